-- A price row is announced the moment it is written, fits its model's type, and an increase takes effect seven days after
-- its announcement at the earliest. Any component that rises makes it an increase, measured against the price that would
-- otherwise be in force then; nor may a new price turn one that is already announced into an increase on short notice.
create or replace function app.guard_price() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_type text;
  v_before app.prices;
  v_next app.prices;
begin
  new.announced_at := now();
  new.effective_at := greatest(new.effective_at, new.announced_at);

  select m.type into v_type from app.models m where m.id = new.model_id;
  if new.unit <> (case v_type
    when 'chat' then 'per_1k_tokens'
    when 'speech' then 'per_1k_characters'
    when 'transcription' then 'per_10_seconds'
    when 'image' then 'per_image'
    when 'video' then 'per_second'
    else 'per_call'
  end) then
    raise exception 'a % model is not priced %', v_type, replace(new.unit, '_', ' ')
      using errcode = 'check_violation', constraint = 'unit_fits_model_type';
  end if;
  if v_type = 'image' and (new.size = '' or new.quality = '') or v_type <> 'image' and new.quality <> ''
     or v_type not in ('image', 'video') and new.size <> '' then
    raise exception 'image prices have a size and a quality, video prices may have a size, others have neither'
      using errcode = 'check_violation', constraint = 'size_and_quality_fit_model_type';
  end if;

  v_before := app.price_in_force(new.model_id, new.size, new.quality, new.effective_at);
  if app.is_increase(v_before, new) and new.effective_at < new.announced_at + interval '7 days' then
    raise exception 'a price increase needs seven days'' notice: effective_at must be % or later',
      to_char(new.announced_at at time zone 'UTC' + interval '7 days', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
      using errcode = 'check_violation', constraint = 'increase_needs_seven_days_notice';
  end if;

  select * into v_next from app.prices p
    where p.model_id = new.model_id and p.size = new.size and p.quality = new.quality
      and p.effective_at > new.effective_at
    order by p.effective_at
    limit 1;
  if app.is_increase(new, v_next) and v_next.effective_at < v_next.announced_at + interval '7 days' then
    raise exception 'the price announced for % would become an increase without seven days'' notice',
      to_char(v_next.effective_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
      using errcode = 'check_violation', constraint = 'increase_needs_seven_days_notice';
  end if;
  return new;
end
$$;
create or replace trigger _200_increase_needs_seven_days_notice before insert on app.prices
  for each row execute function app.guard_price();
-- beside migration 0005's guard of each row
create or replace trigger _110_prices_never_truncated before truncate on app.prices
  for each statement execute function app.refuse_change();
