-- Expire: voids holds past their deadline, oldest first, skipping those somebody is resolving at this moment.
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
begin
  select json_agg(json_build_object('request_id', h.request_id, 'state', 'expired', 'cost_ap', 0,
                                    'error_code', 'generation_failed'))
    into v_batch
    from (
      select h.request_id from app.holds h
        where h.deadline_at < now()
        order by h.request_id
        limit p_limit
        for update skip locked
    ) h;
  if v_batch is not null then
    return query select s.request_id from app.settle_requests(v_batch) s where s.is_settled;
  end if;
end
$$;
