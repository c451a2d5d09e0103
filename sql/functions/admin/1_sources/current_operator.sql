-- Who acts, for the audit log: the token's name and id, which the admin server sets for each transaction. Without a name
-- nothing is changed.
create or replace function app.current_operator() returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_operator text := nullif(current_setting('svc.operator', true), '');
begin
  if v_operator is null then
    raise exception 'no operator is named for this transaction' using errcode = 'insufficient_privilege';
  end if;
  return v_operator;
end
$$;
