-- Counts anew what a key has used of the running day and month, for caps that begin now: without a cap nothing is counted
-- (count_against_caps), and of one that was cleared and is set again the counter stands where it stood. What is open counts in full
-- and will give back what it does not spend, as if it had been held under the cap.
-- Locks in the order of settle_requests, holds before the balance: under both, nothing of the account is accepted or ended. Holds that
-- came meanwhile and are being ended already would wait for the balance, and this for them: then both locks are let go and taken anew.
-- What an ingress had taken before it was told of the change (svc_accounts) is accepted without the cap and not counted.
--
-- p_scopes: of 'key:day' and 'key:month'.
create or replace function app.begin_caps(p_account uuid, p_key uuid, p_scopes text[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
  c_max_tries constant integer := 100;
  c_clocks_apart constant interval := '1 hour'; -- ids are made by the ingress, before their requests are on the books
  v_scope text;
  v_begin timestamptz;
begin
  for v_try in 1..c_max_tries loop
    begin
      perform from app.holds h where h.account_id = p_account order by h.request_id for update;
      perform from app.balances b where b.account_id = p_account for update;
      if not found then
        -- nothing was ever accepted
        return;
      end if;
      perform from app.holds h where h.account_id = p_account order by h.request_id for update nowait;
      exit;
    exception
      when lock_not_available then
        if v_try = c_max_tries then
          raise;
        end if;
    end;
  end loop;
  foreach v_scope in array p_scopes loop
    v_begin := date_trunc(case v_scope when 'key:month' then 'month' else 'day' end, now(), 'utc');
    insert into app.cap_usage (subject_id, scope, period_start, used_ap)
      select p_key, v_scope, (v_begin at time zone 'utc')::date, coalesce(sum(coalesce(q.cost_ap, q.hold_ap)), 0)
        from app.requests q
        where q.account_id = p_account and q.id >= app.uuid_floor(v_begin - c_clocks_apart)
          and q.key_id = p_key and q.created_at >= v_begin
      on conflict (subject_id, scope, period_start) do update set used_ap = excluded.used_ap;
    update app.requests q
      set capped_scopes = array_append(q.capped_scopes, v_scope)
      from app.holds h
      where h.account_id = p_account and q.id = h.request_id
        and q.key_id = p_key and q.created_at >= v_begin
        and v_scope <> all (coalesce(q.capped_scopes, '{}'));
  end loop;
end
$$;
