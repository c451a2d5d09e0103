-- Of the files that are to be looked at, oldest first, those whose time is over (is_over): expired, deleted, or never stored and of
-- no request that is under way. Those are the caller's to delete for ten minutes, then due again; two callers get different ones.
-- The others are looked at later: a request that takes long may still store or read what it has written; a partial picture may be
-- read for an hour after its request has ended; the picture of a removed character is read by requests for pictures of before.
-- Returns what was looked at: as many rows as p_limit means that there may be more.
create or replace function app.due_assets(p_limit integer)
returns table (id uuid, kind text, content_type text, is_over boolean)
language sql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
  with due as materialized (
    select a.id,
           case a.state
             when 'stored' then (
               a.deleted_at is not null
               -- a request that was being submitted when the character was removed may name its picture
               and not (
                 a.kind = 'character'
                 and exists (
                   select from app.holds h join app.requests q on q.id = h.request_id
                     where h.request_id < app.uuid_floor(a.deleted_at + interval '5 minutes') and q.task = 'images/generate'
                 )
               )
             ) or coalesce(a.expires_at <= now(), false)
             else not exists (select from app.holds h where h.request_id = a.request_id)
               and (
                 a.kind <> 'partial'
                 or not exists (
                   select from app.requests q where q.id = a.request_id and q.finished_at > now() - interval '1 hour'
                 )
               )
           end as is_over
      from app.assets a
      where a.sweep_at <= now()
      order by a.sweep_at
      limit p_limit
      for update of a skip locked
  )
  update app.assets a
    set sweep_at = case
      when d.is_over then now() + interval '10 minutes'
      when a.deleted_at is not null then now() + interval '5 minutes'
      when a.state = 'stored' then a.expires_at
      else now() + interval '1 hour'
    end
    from due d
    where a.id = d.id
    returning a.id, a.kind, a.content_type, d.is_over
$$;
