-- The price of a model (for a size and quality, where it has them) at a moment.
create or replace function app.price_in_force(p_model text, p_size text, p_quality text, p_at timestamptz) returns app.prices
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select p from app.prices p
    where p.model_id = p_model and p.size = p_size and p.quality = p_quality and p.effective_at <= p_at
    order by p.effective_at desc
    limit 1
$$;
