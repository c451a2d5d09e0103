-- Writes a catalogue file that core/catalogue-file has checked: all of it or nothing. Providers and models are put in or
-- changed; a model's routes and voices become the file's; prices go through publish_price; with p_prune, models that the
-- file does not name are retired. One audit entry where anything changed.
--
-- p_file: {providers: [...], models: [...], routes: [...], voices: [...], prices: [{n, ...}]}, the columns of the tables.
-- Returns {retired: [model ids], price_changes: [{model, size, quality, before, after}]}.
create or replace function app.import_catalogue(p_file jsonb, p_prune boolean, p_actor text) returns jsonb
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before jsonb;
  v_after jsonb;
  v_retired jsonb;
  v_prices jsonb;
begin
  perform pg_advisory_xact_lock(hashtext('app.import_catalogue'));
  -- the clock of this transaction stands where it stood before it waited for another import
  if exists (select from app.prices p where p.announced_at > now()) then
    raise exception 'prices were published since this import began: run it again' using errcode = 'serialization_failure';
  end if;
  v_before := app.catalogue_document();
  if exists (
    select from jsonb_to_recordset(p_file -> 'models') as f(id text, type text)
      join app.models m on m.id = f.id and m.type <> f.type
  ) then
    raise exception 'the type of a model never changes' using errcode = 'check_violation';
  end if;

  insert into app.providers as p (name, kind, base_url, credential_env)
    select f.name, f.kind, f.base_url, f.credential_env from jsonb_populate_recordset(null::app.providers, p_file -> 'providers') f
    on conflict (name) do update
      set kind = excluded.kind, base_url = excluded.base_url, credential_env = excluded.credential_env
      where (p.kind, p.base_url, p.credential_env) is distinct from (excluded.kind, excluded.base_url, excluded.credential_env);

  insert into app.models as m (id, type, max_tokens, context_tokens, recommended)
    select f.id, f.type, f.max_tokens, f.context_tokens, f.recommended
      from jsonb_populate_recordset(null::app.models, p_file -> 'models') f
    on conflict (id) do update
      set max_tokens = excluded.max_tokens, context_tokens = excluded.context_tokens, recommended = excluded.recommended,
          retired_at = null
      where (m.max_tokens, m.context_tokens, m.recommended, m.retired_at)
            is distinct from (excluded.max_tokens, excluded.context_tokens, excluded.recommended, null);
  -- one default of a type: the last file that names one wins
  update app.models m set recommended = false
    from jsonb_populate_recordset(null::app.models, p_file -> 'models') f
    where m.recommended and f.recommended and f.type = m.type and f.id <> m.id;

  delete from app.routes r
    using jsonb_to_recordset(p_file -> 'models') as f(id text)
    where r.model_id = f.id and not exists (
      select from jsonb_populate_recordset(null::app.routes, p_file -> 'routes') k
        where (k.model_id, k.provider, k.upstream_model) = (r.model_id, r.provider, r.upstream_model)
    );
  insert into app.routes as r (model_id, provider, upstream_model, priority, weight)
    select f.model_id, f.provider, f.upstream_model, f.priority, f.weight
      from jsonb_populate_recordset(null::app.routes, p_file -> 'routes') f
    on conflict (model_id, provider, upstream_model) do update set priority = excluded.priority, weight = excluded.weight
      where (r.priority, r.weight) is distinct from (excluded.priority, excluded.weight);

  if p_prune then
    with retired as (
      update app.models m set retired_at = now()
        where m.retired_at is null
          and not exists (select from jsonb_to_recordset(p_file -> 'models') as f(id text) where f.id = m.id)
        returning m.id
    )
    select jsonb_agg(r.id order by r.id) into v_retired from retired r;
  end if;

  delete from app.voices v
    using app.models m
    where m.id = v.model_id
      and (p_prune and m.retired_at is not null
           or exists (select from jsonb_to_recordset(p_file -> 'models') as f(id text) where f.id = m.id))
      and not exists (select from jsonb_to_recordset(p_file -> 'voices') as k(slug text) where k.slug = v.slug);
  insert into app.voices as v (slug, name, tagline, provider, upstream_voice, model_id)
    select f.slug, f.name, f.tagline, f.provider, f.upstream_voice, f.model_id
      from jsonb_populate_recordset(null::app.voices, p_file -> 'voices') f
    on conflict (slug) do update
      set name = excluded.name, tagline = excluded.tagline, provider = excluded.provider,
          upstream_voice = excluded.upstream_voice, model_id = excluded.model_id
      where (v.name, v.tagline, v.provider, v.upstream_voice, v.model_id)
            is distinct from (excluded.name, excluded.tagline, excluded.provider, excluded.upstream_voice, excluded.model_id);

  v_prices := app.import_prices(p_file -> 'prices', p_actor);

  v_after := app.catalogue_document();
  if v_after is distinct from v_before then
    perform app.audit(p_actor, 'import_catalogue', 'catalogue', 'catalogue', v_before, v_after);
  end if;
  return jsonb_build_object('retired', coalesce(v_retired, '[]'), 'price_changes', v_prices);
end
$$;
