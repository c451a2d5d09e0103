-- Keeps app.gallery_totals right, whoever changes an item. The total of all comes first, so that everybody waits there and nobody
-- waits crosswise; it is the last lock of whatever transaction this is part of.
create or replace function app.count_gallery() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
  c_all constant uuid := '00000000-0000-0000-0000-000000000000';
  v_change integer;
begin
  v_change := (new.withdrawn_at is null)::integer
    - case when tg_op = 'UPDATE' then (old.withdrawn_at is null)::integer else 0 end;
  if v_change <> 0 then
    -- a row that is to be made must not fall below nothing either
    insert into app.gallery_totals as t (character_id, items)
      select c.id, 0 from unnest(array[c_all, new.character_id]) with ordinality c(id, n) where c.id is not null order by c.n
      on conflict (character_id) do update set items = t.items;
    update app.gallery_totals t set items = t.items + v_change where t.character_id in (c_all, new.character_id);
  end if;
  return null;
end
$$;
create or replace trigger _500_count_gallery after insert or update on app.gallery_items
  for each row execute function app.count_gallery();
