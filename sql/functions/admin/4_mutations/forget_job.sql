-- Deletes a failed job. A request it belonged to is voided by housekeeping at its deadline, as any other that nobody settles.
create function admin.forget_job(p_job bigint) returns admin.failed_jobs
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
  perform graphile_worker.complete_jobs(array[p_job]);
  perform app.audit(app.current_operator(), 'forget_job', 'job', p_job::text, to_jsonb(v_before), null);
  return v_before;
end
$$;
comment on function admin.forget_job is '@resultFieldName failedJob
Deletes a failed job for good. The result is the job as it was.';
