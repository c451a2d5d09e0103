-- A list of allowed models must name models of the catalogue (retired ones too): a slip would lock the caller out.
create or replace function app.refuse_unknown_models(p_models text[]) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_unknown text;
begin
  select string_agg(m.id, ', ') into v_unknown
    from unnest(p_models) m(id)
    where not exists (select from app.models k where k.id = m.id);
  if v_unknown is not null then
    raise exception 'no such model: %', v_unknown using errcode = 'no_data_found';
  end if;
end
$$;
