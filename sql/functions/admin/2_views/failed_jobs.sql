-- A view, so that it pages as the others do; the query stands in app.failed_jobs.
create view admin.failed_jobs as select j.* from app.failed_jobs() j;

comment on view admin.failed_jobs is '@primaryKey id
@defaultOrder PRIMARY_KEY_DESC
A job that has used up its attempts. Retry it or forget it.';
comment on column admin.failed_jobs.id is 'The job''s number.';
comment on column admin.failed_jobs.task is '@notNull
The task''s name.';
comment on column admin.failed_jobs.attempts is '@notNull
How often it was tried.';
comment on column admin.failed_jobs.max_attempts is '@notNull
How often it may be tried.';
comment on column admin.failed_jobs.last_error is 'The last error, its first 500 characters.';
comment on column admin.failed_jobs.created_at is '@notNull
When it was enqueued.';
comment on column admin.failed_jobs.failed_at is '@notNull
When it last changed.';
