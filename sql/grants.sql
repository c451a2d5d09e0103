-- What each role may do, applied after the functions at every release. Balances, holds and the ledger are written by the
-- SECURITY DEFINER functions alone: no role holds a right to change them.
do $$
begin
  if to_regrole('app_ingress') is null then
    return; -- a platform without roles: see migration 0001
  end if;

  revoke all on all functions in schema app from public;
  grant usage on schema app to app_ingress, app_worker;
  grant select on app.accounts, app.balances, app.keys, app.cap_usage, app.providers, app.models, app.routes, app.prices,
    app.voices, app.announcements, app.requests, app.ledger_entries, app.request_results, app.holds, app.processes,
    app.idempotency_keys, app.assets, app.result_cache, app.characters, app.gallery_items, app.gallery_totals, app.licenses,
    app.certs, app.legacy_certs to app_ingress;
  grant execute on function
    app.submit_requests, app.submit_funded_requests, app.cancel_request, app.claim_cached_answer, app.foresee_submission, app.find_key, app.touch_keys, app.beat, app.leave, app.uuid_floor,
    app.price_in_force, app.cap_used, app.begin_assets, app.store_assets, app.abandon_assets, app.purge_assets,
    app.delete_assets, app.publish_image, app.withdraw_images, app.certify_image, app.register_character,
    app.remove_character, app.count_page_views
    to app_ingress;

  grant select on app.providers, app.models, app.routes, app.prices, app.voices, app.requests, app.holds, app.processes,
    app.request_inputs, app.assets to app_worker;
  grant execute on function
    app.settle_requests(json), app.settle_requests(json, uuid[]), app.expire_holds, app.mark_running, app.lost_holds,
    app.beat, app.leave, app.reap_processes,
    app.maintain_partitions, app.purge_expired, app.ledger_check, app.begin_assets, app.abandon_assets, app.due_assets,
    app.purge_assets
    to app_worker;
end
$$;

-- Operators (sql/functions/admin): readers read the views, operators act besides. Neither holds a right on app: the views and
-- functions run as their owner. app.queue_tasks and app.failed_jobs stand below views, where PostgreSQL asks the reader's right.
do $$
begin
  if to_regrole('operator') is null or to_regrole('operator_reader') is null then
    return; -- the admin server then refuses readers by itself
  end if;

  revoke all on all functions in schema admin from public;
  grant usage on schema admin to operator_reader, operator;
  grant select on all tables in schema admin to operator_reader, operator;
  grant execute on all functions in schema admin to operator;
  grant execute on function
    admin.search_requests, admin.search_accounts, admin.accounts_awaiting_approval, admin.requests_ledger_entries,
    app.queue_tasks, app.failed_jobs
    to operator_reader;
  grant execute on function app.queue_tasks, app.failed_jobs to operator;
end
$$;
