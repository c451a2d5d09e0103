-- Ingresses and workers that are running or died lately.
create view admin.processes as
  select p.id, p.kind, p.pool_id, p.details, p.started_at, p.beat_at,
         extract(epoch from now() - p.beat_at)::integer as silent_for_seconds
    from app.processes p;

comment on view admin.processes is '@primaryKey id
A running ingress or worker.';
comment on column admin.processes.id is 'The process''s id, new at each start.';
comment on column admin.processes.kind is '@notNull
ingress or worker.';
comment on column admin.processes.pool_id is 'The queue engine''s name for a worker.';
comment on column admin.processes.details is '@notNull
What it says of itself.';
comment on column admin.processes.started_at is '@notNull
When it started.';
comment on column admin.processes.beat_at is '@notNull
When it was last heard of.';
comment on column admin.processes.silent_for_seconds is '@notNull
Seconds since then; one that stays silent is taken for dead and its requests are rescued.';
