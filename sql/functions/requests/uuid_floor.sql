-- The smallest UUID version 7 of a moment: ids of requests made from then on are not below it (RFC 9562, section 5.7).
create or replace function app.uuid_floor(p_at timestamptz) returns uuid
language sql immutable parallel safe
return (lpad(to_hex((extract(epoch from p_at) * 1000)::bigint), 12, '0') || '00000000000000000000')::uuid;
