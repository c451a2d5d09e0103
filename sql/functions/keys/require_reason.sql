-- What moves money or takes something away by hand says why: the reason stands in the audit or the ledger.
create or replace function app.require_reason(p_reason text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if coalesce(trim(p_reason), '') = '' then
    raise exception 'a reason is required' using errcode = 'invalid_parameter_value';
  end if;
end
$$;
