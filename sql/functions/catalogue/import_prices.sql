-- The prices of a catalogue file: [{n, model_id, unit, ap_in_per_1k, ap_out_per_1k, ap, size, quality, effective_at}], at
-- most one without a date for each model, size and quality. Returns the changes of prices there were before; raises all
-- refusals together, as [{n, problem}] in the exception's detail.
create or replace function app.import_prices(p_prices jsonb, p_actor text) returns jsonb
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_wanted record;
  v_newest bigint;
  v_before app.prices;
  v_after app.prices;
  v_changes jsonb := '[]';
  v_refusals jsonb := '[]';
begin
  for v_wanted in
    -- a date that has passed is the present; only the latest such price still matters
    select distinct on (f.model_id, f.size, f.quality, greatest(f.effective_at, now()))
           f.n, f.model_id, f.unit, f.ap_in_per_1k, f.ap_out_per_1k, f.ap, f.size, f.quality,
           case when f.effective_at is not null then greatest(f.effective_at, now()) end as effective_at
      from jsonb_to_recordset(p_prices) as f(
        n integer, model_id text, unit text, ap_in_per_1k bigint, ap_out_per_1k bigint, ap bigint, size text, quality text,
        effective_at timestamptz
      )
      order by f.model_id, f.size, f.quality, greatest(f.effective_at, now()), f.effective_at desc nulls last
  loop
    begin
      select coalesce(max(p.id), 0) into v_newest from app.prices p;
      v_after := app.publish_price(v_wanted.model_id, v_wanted.unit, v_wanted.ap_in_per_1k, v_wanted.ap_out_per_1k,
        v_wanted.ap, v_wanted.size, v_wanted.quality, v_wanted.effective_at, p_actor);
      if v_after.id > v_newest then
        select * into v_before from app.prices p
          where p.model_id = v_after.model_id and p.size = v_after.size and p.quality = v_after.quality
            and p.effective_at < v_after.effective_at
          order by p.effective_at desc
          limit 1;
        if found then
          v_changes := v_changes || jsonb_build_object('model', v_after.model_id, 'size', v_after.size,
            'quality', v_after.quality, 'before', to_jsonb(v_before), 'after', to_jsonb(v_after));
        end if;
      end if;
    exception
      when check_violation then
        v_refusals := v_refusals || jsonb_build_object('n', v_wanted.n, 'problem', sqlerrm);
      when unique_violation then
        v_refusals := v_refusals || jsonb_build_object('n', v_wanted.n, 'problem',
          'another price is announced for this very moment, and announced prices never change');
    end;
  end loop;
  if v_refusals <> '[]' then
    raise exception 'the catalogue''s prices are refused' using errcode = 'check_violation',
      constraint = 'catalogue_prices_refused', detail = v_refusals::text;
  end if;
  return v_changes;
end
$$;
