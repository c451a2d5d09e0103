-- Publishes a price: writes the row and, where it changes a price, its announcement. Returns the new row.
-- p_effective_at null: as soon as it may be (an increase in seven days, anything else now).
-- Nothing is written where the price would be the one already in force then.
create or replace function app.publish_price(
  p_model text, p_unit text, p_ap_in_per_1k bigint, p_ap_out_per_1k bigint, p_ap bigint, p_size text, p_quality text,
  p_effective_at timestamptz, p_actor text
) returns app.prices
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before app.prices;
  v_wanted app.prices;
  v_after app.prices;
  v_effective_at timestamptz := p_effective_at;
  v_amounts_en text;
begin
  perform pg_advisory_xact_lock(hashtext('app.publish_price'), hashtext(p_model));
  v_wanted.unit := p_unit;
  v_wanted.ap_in_per_1k := p_ap_in_per_1k;
  v_wanted.ap_out_per_1k := p_ap_out_per_1k;
  v_wanted.ap := p_ap;
  v_before := app.price_in_force(p_model, coalesce(p_size, ''), coalesce(p_quality, ''), coalesce(p_effective_at, now()));
  if v_effective_at is null then
    v_effective_at := now();
    if app.is_increase(v_before, v_wanted) then
      v_effective_at := now() + interval '7 days';
      v_before := app.price_in_force(p_model, coalesce(p_size, ''), coalesce(p_quality, ''), v_effective_at);
    end if;
  end if;
  if v_before.id is not null and v_before.unit = p_unit and v_before.ap is not distinct from p_ap
     and v_before.ap_in_per_1k is not distinct from p_ap_in_per_1k
     and v_before.ap_out_per_1k is not distinct from p_ap_out_per_1k then
    return v_before;
  end if;

  insert into app.prices (model_id, unit, ap_in_per_1k, ap_out_per_1k, ap, size, quality, effective_at)
    values (p_model, p_unit, p_ap_in_per_1k, p_ap_out_per_1k, p_ap, coalesce(p_size, ''), coalesce(p_quality, ''),
            v_effective_at)
    returning * into v_after;
  if v_before.id is not null then
    v_amounts_en := concat_ws(', ',
      'input ' || v_before.ap_in_per_1k || ' → ' || v_after.ap_in_per_1k || ' AP per 1,000 tokens',
      'output ' || v_before.ap_out_per_1k || ' → ' || v_after.ap_out_per_1k || ' AP per 1,000 tokens',
      v_before.ap || ' → ' || v_after.ap || ' AP ' || replace(v_after.unit, '_', ' '),
      nullif(concat_ws(' ', nullif(v_after.size, ''), nullif(v_after.quality, '')), ''));
    insert into app.announcements (kind, title_en, title_ja, body_en, body_ja, price_id)
      values (
        'price',
        'Price change: ' || p_model,
        '料金改定: ' || p_model,
        format('From %s the price of `%s` changes: %s.', to_char(v_effective_at, 'YYYY-MM-DD'), p_model, v_amounts_en),
        format('%s より `%s` の料金が変わります（%s）。', to_char(v_effective_at, 'YYYY-MM-DD'), p_model, v_amounts_en),
        v_after.id
      );
  end if;
  perform app.audit(p_actor, 'publish_price', 'model', p_model, case when v_before.id is not null then to_jsonb(v_before) end,
    to_jsonb(v_after));
  return v_after;
end
$$;
