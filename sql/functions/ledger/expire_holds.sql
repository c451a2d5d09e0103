-- Expire: voids holds past their deadline, oldest first, skipping those somebody is resolving at this moment, and those of accounts
-- whose balance stays locked.
-- Returns the requests ended. Run by every worker's housekeeping.
create or replace function app.expire_holds(p_limit integer default 500)
returns table (request_id uuid)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_batch json;
  v_one json;
  -- each lock is waited for once: a lock timeout for every hold of the account would be longer than the statement may take
  v_locked text[] := '{}';
begin
  select json_agg(json_build_object('request_id', h.request_id, 'state', 'expired', 'cost_ap', 0,
                                    'error_code', 'generation_failed', 'account_id', h.account_id))
    into v_batch
    from (
      select h.request_id, h.account_id from app.holds h
        where h.deadline_at < now()
        order by h.request_id
        limit p_limit
        for update skip locked
    ) h;
  if v_batch is not null then
    begin
      return query select s.request_id from app.settle_requests(v_batch) s where s.is_settled;
    exception
      when others then
        -- one that cannot be settled (ledger_check names it) must not keep the others open
        for v_one in select value from json_array_elements(v_batch) loop
          continue when v_one ->> 'account_id' = any (v_locked);
          begin
            return query select s.request_id from app.settle_requests(json_build_array(v_one)) s where s.is_settled;
          exception
            when lock_not_available then
              v_locked := v_locked || (v_one ->> 'account_id');
            when others then
              raise warning 'the hold of % cannot be expired: %', v_one ->> 'request_id', sqlerrm;
          end;
        end loop;
    end;
  end if;
end
$$;
