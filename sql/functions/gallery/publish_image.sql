-- Shows a picture to everybody. It is charged for once, whoever asks how often: its row is locked first, and who comes second
-- finds it published. One that was taken back is shown again for nothing, as of now.
--
-- p_submission: JSON of app.submission. p_image: {asset_id, image_id, model_id, license_token, license_terms, published_at}.
-- p_result: the answer where this charges; its license_token is put in here.
-- Outcomes: those of submit_requests, and: unchanged, republished (both free) | not_found | gone | expired
create or replace function app.publish_image(p_submission json, p_image jsonb, p_result jsonb, p_initial_grant_ap bigint)
returns app.submit_answer
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_item app.submission := json_populate_record(null::app.submission, p_submission);
  v_asset app.assets;
  v_known app.gallery_items;
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

  select * into v_known from app.gallery_items g where g.asset_id = v_asset.id;
  if found then
    v_answer.outcome := 'unchanged';
    if v_known.withdrawn_at is not null then
      perform app.keep_asset(v_asset.id);
      update app.gallery_items g set published_at = (p_image ->> 'published_at')::timestamptz, withdrawn_at = null
        where g.asset_id = v_asset.id;
      v_answer.outcome := 'republished';
    end if;
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
  insert into app.gallery_items (asset_id, image_id, account_id, request_id, model_id, character_id, charge_request_id, published_at)
    values (v_asset.id, (p_image ->> 'image_id')::uuid, v_asset.account_id, v_asset.request_id, p_image ->> 'model_id',
            (v_asset.details ->> 'characterId')::uuid, v_item.id, (p_image ->> 'published_at')::timestamptz);
  return v_answer;
end
$$;
