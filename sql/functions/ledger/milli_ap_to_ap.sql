-- Thousandths of an AP, rounded up to whole AP. Integers only: no floating point touches money.
create or replace function app.milli_ap_to_ap(p_milli_ap bigint) returns bigint
language sql immutable parallel safe
return (p_milli_ap + 999) / 1000;
