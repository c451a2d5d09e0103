-- A view, so that it pages and filters as the others do; the counting stands in app.queue_tasks.
create view admin.queue_tasks as select q.* from app.queue_tasks() q;

comment on view admin.queue_tasks is '@primaryKey task
The queue, counted by task. Finished jobs are deleted, so an empty queue has no rows.';
comment on column admin.queue_tasks.task is 'The task''s name.';
comment on column admin.queue_tasks.waiting is '@notNull
Jobs that could run now: the depth of the queue.';
comment on column admin.queue_tasks.scheduled is '@notNull
Jobs that wait for their time (a later run, or a retry).';
comment on column admin.queue_tasks.running is '@notNull
Jobs a worker has taken.';
comment on column admin.queue_tasks.failed is '@notNull
Jobs that have used up their attempts.';
comment on column admin.queue_tasks.oldest_waiting_at is 'Since when the oldest waiting job could have run.';
