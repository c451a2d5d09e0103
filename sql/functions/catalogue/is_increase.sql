-- Whether any component of a price is higher than before; false where there was none before.
create or replace function app.is_increase(p_from app.prices, p_to app.prices) returns boolean
language sql immutable
as $$
  select coalesce(p_to.unit <> p_from.unit or p_to.ap > p_from.ap or p_to.ap_in_per_1k > p_from.ap_in_per_1k
                  or p_to.ap_out_per_1k > p_from.ap_out_per_1k, false)
$$;
