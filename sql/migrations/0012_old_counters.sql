-- Up Migration

-- app.purge_expired looks for counters of past periods. Not of the date itself: to the planner, whose statistics are of before, the
-- counters of today are few, and it would look for one of them among all of today's instead of by the primary key.
create index cap_usage_by_age on app.cap_usage ((period_start::timestamp));
