-- Lets a failed job run again from its first attempt. Returns it as it was.
create function admin.retry_job(p_job bigint) returns admin.failed_jobs
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before admin.failed_jobs;
begin
  select * into v_before from admin.failed_jobs j where j.id = p_job;
  if not found then
    raise exception 'no such failed job' using errcode = 'no_data_found';
  end if;
  perform graphile_worker.reschedule_jobs(array[p_job], run_at => now(), attempts => 0);
  perform app.audit(app.current_operator(), 'retry_job', 'job', p_job::text, to_jsonb(v_before), jsonb_build_object('attempts', 0));
  return v_before;
end
$$;
comment on function admin.retry_job is '@resultFieldName failedJob
Lets a failed job run again, with all its attempts. The result is the job as it was.';
