-- What submit_requests would say of a request, without holding, counting or locking anything: so that what it takes to submit one (files
-- in the store) is not done for somebody who cannot pay. Between this and submit_requests all may change: that has the last word.
--
-- p_submission: JSON of app.submission. Returns what submit_requests answers; `accepted` means that nothing speaks against it now.
create or replace function app.foresee_submission(p_submission json, p_initial_grant_ap bigint) returns app.submit_answer
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_item app.submission := json_populate_record(null::app.submission, p_submission);
  v_answer app.submit_answer;
  v_balance app.balances;
  v_is_granted boolean;
  v_today date := (now() at time zone 'utc')::date;
  v_month date := date_trunc('month', now() at time zone 'utc')::date;
begin
  v_answer := app.known_idempotency_key(v_item);
  if v_answer.outcome is not null then
    return v_answer;
  end if;

  -- no row: nothing was ever paid in
  select * into v_balance from app.balances b where b.account_id = v_item.account_id;
  v_balance.balance_ap := coalesce(v_balance.balance_ap, 0);
  v_balance.held_ap := coalesce(v_balance.held_ap, 0);
  v_is_granted := coalesce(v_balance.purchased_ap, 0) <= v_balance.held_ap;
  v_answer.n := v_item.n;
  v_answer.held_ap := v_balance.held_ap;
  v_answer.available_ap := v_balance.balance_ap - v_balance.held_ap
    + case when v_balance.initial_grant_at is not null or not v_item.is_grant_allowed then 0 else p_initial_grant_ap end;
  -- the least that would be held
  v_answer.required_ap := app.milli_ap_to_ap(v_item.fixed_milli_ap + v_item.min_units * v_item.unit_milli_ap);

  if v_answer.required_ap > v_answer.available_ap
     and v_balance.initial_grant_at is null and not v_item.is_grant_allowed and v_balance.balance_ap = 0 then
    v_answer.outcome := 'account_too_new';
  elsif v_item.needs_purchased and v_is_granted then
    v_answer.outcome := 'card_required';
  else
    -- as if it were not affordable: the caps are looked at, and nothing is counted
    select c.outcome, c.cap_ap, c.resets_at into v_answer.outcome, v_answer.cap_ap, v_answer.resets_at
      from app.count_against_caps(v_item, v_answer.required_ap, false, v_is_granted, v_today, v_month) c;
  end if;
  if v_answer.outcome is null then
    v_answer.outcome := case when v_answer.required_ap > v_answer.available_ap then 'insufficient_ap' else 'accepted' end;
  end if;
  return v_answer;
end
$$;
