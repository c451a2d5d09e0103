-- Reserve and post in one transaction, for a paid operation that needs no provider: the request is on the books, held for, charged
-- and answered when this returns, and there is no job. The checks are those of submit_requests (caps, grant, card, balance,
-- Idempotency-Key), the charge that of settle_requests. For functions that do the operation in the same transaction; they lock what
-- they work on before they call this, which locks the balance.
--
-- p_submission: JSON of app.submission (n 1, with a price that is fixed). p_result: the answer, kept for replays and polling.
-- Returns what submit_requests answers: nothing was charged unless the outcome is `accepted`.
create or replace function app.charge_request(p_submission json, p_result jsonb, p_initial_grant_ap bigint)
returns app.submit_answer
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_item app.submission := json_populate_record(null::app.submission, p_submission);
  v_answer app.submit_answer;
begin
  -- without job data there is no job
  select s.n, s.outcome, s.hold_ap, s.units, s.required_ap, s.available_ap, s.held_ap, s.cap_ap, s.resets_at, s.other_request_id, null
    into v_answer
    from app.submit_requests(json_build_array(p_submission), '[]', p_initial_grant_ap) s;
  if v_answer.outcome = 'accepted' then
    perform app.settle_requests(
      json_build_array(json_build_object(
        'request_id', v_item.id, 'state', 'succeeded', 'cost_ap', v_answer.hold_ap, 'usage', json_build_object('calls', 1),
        'result_kind', 'json', 'result', p_result::text
      )),
      array[v_item.id]
    );
  end if;
  return v_answer;
end
$$;
