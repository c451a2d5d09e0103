-- Makes a picture the selected one of its generation, and a certificate of it, which is charged for. A picture is certified once.
--
-- p_submission: JSON of app.submission. p_image: {asset_id, image_id, model_id, license_token, license_terms}.
-- p_cert: {cert_id, title, holder_name, issued_on, details, record_sha256 (hexadecimal)}. p_result: the answer; its license_token is
-- put in here.
-- Outcomes: those of submit_requests, and: entry_already_certified | not_found | gone | expired
create or replace function app.certify_image(
  p_submission json, p_image jsonb, p_cert jsonb, p_result jsonb, p_initial_grant_ap bigint
) returns app.submit_answer
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_item app.submission := json_populate_record(null::app.submission, p_submission);
  v_asset app.assets;
  v_answer app.submit_answer;
  v_token text;
begin
  v_asset := app.lock_image((p_image ->> 'asset_id')::uuid, v_item.account_id);
  v_answer.outcome := app.end_of_asset(v_asset);
  if v_answer.outcome is not null then
    return v_answer;
  end if;
  v_answer := app.known_idempotency_key(v_item);
  if v_answer.outcome is not null then
    return v_answer;
  end if;
  if exists (select from app.certs c where c.entry_id = v_asset.id::text) then
    v_answer.outcome := 'entry_already_certified';
    return v_answer;
  end if;

  v_token := app.license_asset(v_asset, p_image);
  v_answer := app.charge_request(p_submission, p_result || jsonb_build_object('license_token', v_token), p_initial_grant_ap);
  if v_answer.outcome <> 'accepted' then
    -- a refusal leaves nothing
    delete from app.licenses l where l.token = p_image ->> 'license_token';
    return v_answer;
  end if;
  perform app.keep_asset(v_asset.id);
  update app.assets a set is_selected = false where a.request_id = v_asset.request_id and a.is_selected;
  update app.assets a set is_selected = true where a.id = v_asset.id;
  insert into app.certs (
    cert_id, entry_id, source, status, title, holder_name, issued_on, details, asset_id, image_id, issuer_account_id, issuer_key_id,
    charge_request_id, record_sha256
  ) values (
    (p_cert ->> 'cert_id')::uuid, v_asset.id::text, 'create', 'issued', p_cert ->> 'title', p_cert ->> 'holder_name',
    (p_cert ->> 'issued_on')::date, p_cert -> 'details', v_asset.id,
    (p_image ->> 'image_id')::uuid, v_item.account_id, v_item.key_id, v_item.id,
    decode(p_cert ->> 'record_sha256', 'hex')
  );
  return v_answer;
end
$$;
