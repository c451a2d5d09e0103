-- The catalogue as one JSON document: providers, models on offer with their routes and prices, and voices. Of the prices,
-- those in force (without effective_at) and those announced. Equal documents mean equal catalogues.
create or replace function app.catalogue_document() returns jsonb
language sql stable
security definer
set search_path = pg_catalog, pg_temp
as $$
  with in_force as (
    select distinct on (p.model_id, p.size, p.quality) p.*
      from app.prices p
      where p.effective_at <= now()
      order by p.model_id, p.size, p.quality, p.effective_at desc
  ), listed as (
    select f.model_id, f.size, f.quality, f.ap_in_per_1k, f.ap_out_per_1k, f.ap, null::timestamptz as effective_at
      from in_force f
    union all
    select p.model_id, p.size, p.quality, p.ap_in_per_1k, p.ap_out_per_1k, p.ap, p.effective_at
      from app.prices p
      where p.effective_at > now()
  )
  select jsonb_build_object(
    'providers', (
      select coalesce(jsonb_agg(jsonb_build_object('name', p.name, 'kind', p.kind, 'base_url', p.base_url,
          'credential_env', p.credential_env) order by p.name), '[]')
        from app.providers p
    ),
    'models', (
      select coalesce(jsonb_agg(jsonb_build_object(
          'id', m.id, 'type', m.type, 'max_tokens', m.max_tokens, 'context_tokens', m.context_tokens,
          'recommended', m.recommended,
          'routes', (
            select coalesce(jsonb_agg(jsonb_build_object('provider', r.provider, 'upstream_model', r.upstream_model,
                'priority', r.priority, 'weight', r.weight) order by r.priority, r.provider, r.upstream_model), '[]')
              from app.routes r where r.model_id = m.id
          ),
          'pricing', (
            select coalesce(jsonb_agg(jsonb_build_object('size', l.size, 'quality', l.quality,
                'ap_in_per_1k', l.ap_in_per_1k, 'ap_out_per_1k', l.ap_out_per_1k, 'ap', l.ap,
                'effective_at', to_char(l.effective_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))
                order by l.size, l.quality, l.effective_at nulls first), '[]')
              from listed l where l.model_id = m.id
          )) order by m.type, m.id), '[]')
        from app.models m
        where m.retired_at is null
    ),
    'voices', (
      select coalesce(jsonb_agg(jsonb_build_object('slug', v.slug, 'name', v.name, 'tagline', v.tagline,
          'provider', v.provider, 'upstream_voice', v.upstream_voice, 'model', v.model_id) order by v.slug), '[]')
        from app.voices v
        join app.models m on m.id = v.model_id and m.retired_at is null
    )
  )
$$;
