-- Imports certificates of before this service, all or none; one that is there already is overwritten. Returns how many.
create function admin.import_legacy_certs(p_certificates jsonb) returns integer
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  c_max_certificates constant integer := 5000; -- of one call: its request is limited in size anyway
  v_unknown text;
  v_before jsonb;
  v_numbers bigint[];
begin
  if jsonb_typeof(p_certificates) <> 'array' or jsonb_array_length(p_certificates) not between 1 and c_max_certificates then
    raise exception 'certificates must be a list of 1 to % objects', c_max_certificates using errcode = 'invalid_parameter_value';
  end if;
  if exists (select from jsonb_array_elements(p_certificates) c(value) where jsonb_typeof(c.value) <> 'object') then
    raise exception 'each certificate must be an object' using errcode = 'invalid_parameter_value';
  end if;
  select string_agg(distinct k.name, ', ') into v_unknown
    from jsonb_array_elements(p_certificates) c(value), jsonb_object_keys(c.value) k(name)
    where k.name not in ('number', 'status', 'title', 'holder_name', 'event', 'issued_on', 'details');
  if v_unknown is not null then
    raise exception 'a certificate has number, status, title, holder_name, event, issued_on, details, not %', v_unknown
      using errcode = 'invalid_parameter_value';
  end if;

  select array_agg(c.number order by c.number) into v_numbers from jsonb_to_recordset(p_certificates) c(number bigint);
  if array_position(v_numbers, null) is not null
     or cardinality(v_numbers) <> (select count(distinct n) from unnest(v_numbers) u(n)) then
    raise exception 'each certificate needs a number of its own' using errcode = 'invalid_parameter_value';
  end if;
  select jsonb_agg(to_jsonb(l) order by l.number) into v_before from app.legacy_certs l where l.number = any (v_numbers);
  insert into app.legacy_certs as l (number, status, title, holder_name, event, issued_on, details)
    select c.number, coalesce(c.status, 'issued'), c.title, c.holder_name, c.event, c.issued_on, coalesce(c.details, '{}')
      from jsonb_to_recordset(p_certificates)
        c(number bigint, status text, title text, holder_name text, event text, issued_on date, details jsonb)
    on conflict (number) do update
      set status = excluded.status, title = excluded.title, holder_name = excluded.holder_name, event = excluded.event,
          issued_on = excluded.issued_on, details = excluded.details, imported_at = now();
  perform app.audit(app.current_operator(), 'import_legacy_certs', 'legacy_certs', v_numbers[1]::text,
    case when v_before is not null then jsonb_build_object('certificates', v_before) end,
    jsonb_build_object('certificates', p_certificates));
  return cardinality(v_numbers);
end
$$;
comment on function admin.import_legacy_certs is '@resultFieldName imported
Imports certificates of before this service, all or none: a list of {number, status: issued (default) or revoked, title, holder_name,
event, issued_on, details}. One that is there already is overwritten. Returns how many.';
