-- Reserve, record and enqueue, for the common case: requests with nothing to look up but the balance, of accounts whose
-- purchased AP pays for everything the batch asks of them, and that have had their initial grant or may not have it. All
-- others are left alone and go through submit_requests, which tells why one is refused. Where submit_requests locks a balance first, here the lock comes last: others wait for it only
-- as long as the commit takes.
--
-- p_batch: JSON array of app.funded_submission, without idempotency keys or caps. Returns the n of those accepted.
-- p_jobs: JSON array of the jobs' payloads, at the same positions; apart, since a string in them may be one that no text can hold.
-- Error SV001: what was seen of a balance, or of the queue's task names, holds no longer; nothing was done.
create or replace function app.submit_funded_requests(p_batch json, p_jobs json) returns integer[]
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_bitmapscan = off -- balances are locked in the order of their ids, not of the table
as $$
declare
  c_hold_grace constant interval := '30 seconds'; -- after its deadline a request has this long to be settled by its worker
  v_accepted integer[];
  v_accounts uuid[];
  v_holds bigint[];
  v_jobs bigint;
  v_tasks json; -- whose jobs they are: workers need not wake who runs none of them
  v_rows bigint;
begin
  with item as materialized (
    select i.*, now() + make_interval(secs => i.timeout_seconds) as deadline_at
      from rows from (json_populate_recordset(null::app.funded_submission, p_batch), json_array_elements(p_jobs)) i
  ), payer as materialized (
    select w.account_id, w.hold_ap
      from (
        select account_id, sum(hold_ap)::bigint as hold_ap, bool_or(is_grant_allowed) as may_be_granted from item group by account_id
      ) w
      -- one look-up an account, whatever the table's statistics
      cross join lateral (select * from app.balances b where b.account_id = w.account_id offset 0) b
      where b.purchased_ap - b.held_ap >= w.hold_ap and not (w.may_be_granted and b.initial_grant_at is null)
  ), accepted as materialized (
    -- as a value and not as a condition: that is looked up by a hash, where a join would compare every item with every payer
    select i.* from item i where (i.account_id in (select p.account_id from payer p)) is true
  ), new_requests as (
    insert into app.requests (
      id, account_id, key_id, area, task, model_id, price_id, is_stream, hold_ap, ingress_id, deadline_at
    )
    select id, account_id, key_id, area, task, model_id, price_id, is_stream, hold_ap, ingress_id, deadline_at from accepted
  ), new_holds as (
    insert into app.holds (request_id, account_id, amount_ap, deadline_at)
    select id, account_id, hold_ap, deadline_at + c_hold_grace from accepted
  ), new_jobs as (
    -- as graphile_worker.add_jobs does for jobs without key, queue and flags, at a quarter of its cost
    insert into graphile_worker._private_jobs (task_id, payload, max_attempts)
    select t.id, a.value, 10
      from accepted a
      join graphile_worker._private_tasks t on t.identifier = a.task
    returning 1
  )
  select a.numbers, a.tasks, p.accounts, p.holds, j.count
    into v_accepted, v_tasks, v_accounts, v_holds, v_jobs
    from (select array_agg(n) as numbers, json_agg(distinct task) as tasks from accepted) a,
         (
           select array_agg(account_id order by account_id) as accounts,
                  array_agg(hold_ap order by account_id) as holds
             from payer
         ) p,
         (select count(*) from new_jobs) j;
  if v_accepted is null then
    return '{}';
  end if;
  perform pg_notify('jobs:insert', json_build_object('r', random(), 'count', v_jobs, 'tasks', v_tasks)::text);

  -- in account order, as every function that locks several balances; width_bucket finds the account's place among them
  update app.balances b
    set held_ap = b.held_ap + v_holds[width_bucket(b.account_id, v_accounts)]
    where b.account_id = any (v_accounts) and b.purchased_ap - b.held_ap >= v_holds[width_bucket(b.account_id, v_accounts)];
  get diagnostics v_rows = row_count;
  if v_rows <> cardinality(v_accounts) or v_jobs <> cardinality(v_accepted) then
    raise exception 'the balances or the tasks changed meanwhile' using errcode = 'SV001';
  end if;
  return v_accepted;
end
$$;
