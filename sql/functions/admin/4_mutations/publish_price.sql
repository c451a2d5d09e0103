-- Publishes a price (app.publish_price writes the row, its announcement and the audit row).
create function admin.publish_price(
  p_model text, p_unit admin.price_unit, p_ap bigint default null, p_ap_in_per_1k bigint default null,
  p_ap_out_per_1k bigint default null, p_size text default '', p_quality text default '', p_effective_at timestamptz default null
) returns admin.prices
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_id bigint;
  v_result admin.prices;
begin
  if not exists (select from app.models m where m.id = p_model) then
    raise exception 'no such model' using errcode = 'no_data_found';
  end if;
  select n.id into v_id
    from app.publish_price(p_model, p_unit::text, p_ap_in_per_1k, p_ap_out_per_1k, p_ap, p_size, p_quality, p_effective_at,
                           app.current_operator()) n;
  select * into v_result from admin.prices p where p.id = v_id;
  return v_result;
end
$$;
comment on function admin.publish_price is '@resultFieldName price
Publishes a price and announces the change. An increase under seven days'' notice is refused; without a date it takes effect as soon as it may. Publishing the price in force changes nothing.';
