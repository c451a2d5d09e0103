-- A price row is announced the moment it is written, and an increase takes effect seven days later at the earliest,
-- measured against the price that would otherwise be in force then. Any component that rises makes it an increase.
create or replace function app.guard_price() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before app.prices;
begin
  new.announced_at := now();
  new.effective_at := greatest(new.effective_at, new.announced_at);
  v_before := app.price_in_force(new.model_id, new.size, new.quality, new.effective_at);
  if v_before.id is not null
     and (new.unit <> v_before.unit or new.ap > v_before.ap or new.ap_in_per_1k > v_before.ap_in_per_1k
          or new.ap_out_per_1k > v_before.ap_out_per_1k)
     and new.effective_at < new.announced_at + interval '7 days' then
    raise exception 'a price increase needs seven days'' notice: effective_at must be % or later',
      to_char(new.announced_at + interval '7 days', 'YYYY-MM-DD"T"HH24:MI:SSOF')
      using errcode = 'check_violation', constraint = 'increase_needs_seven_days_notice';
  end if;
  return new;
end
$$;
create or replace trigger _200_increase_needs_seven_days_notice before insert on app.prices
  for each row execute function app.guard_price();
