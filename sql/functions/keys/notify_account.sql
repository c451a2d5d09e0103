-- Tells every ingress to forget what it knows of an account and its keys.
create or replace function app.notify_account() returns trigger
language plpgsql
as $$
begin
  perform pg_notify('svc_accounts', case when tg_table_name = 'accounts' then to_jsonb(new) ->> 'id' else to_jsonb(new) ->> 'account_id' end);
  return null;
end
$$;
create or replace trigger _500_tell_ingresses after update on app.accounts
  for each row execute function app.notify_account();
-- last_used_at is bookkeeping: it changes nothing that is cached
create or replace trigger _500_tell_ingresses after update on app.keys
  for each row when (old.last_used_at is not distinct from new.last_used_at) execute function app.notify_account();
