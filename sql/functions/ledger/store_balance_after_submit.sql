-- Part of submit_requests: writes one account's balance back after its last request of the batch.
-- A row made for an account of which nothing was accepted goes again: a refusal leaves nothing behind.
create or replace function app.store_balance_after_submit(
  p_account uuid, p_balance bigint, p_held bigint, p_had_grant boolean, p_is_new boolean, p_is_changed boolean
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_is_changed then
    update app.balances b
      set balance_ap = p_balance,
          held_ap = p_held,
          initial_grant_at = case when p_had_grant then coalesce(b.initial_grant_at, now()) end
      where b.account_id = p_account;
  elsif p_is_new then
    delete from app.balances b where b.account_id = p_account;
  end if;
end
$$;
