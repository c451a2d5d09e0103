-- Up Migration

-- Roles carry rights, never passwords: a process logs in as the database's owner and, where these roles
-- exist, drops to its own with SET ROLE. A platform whose database user may not create roles keeps working
-- without the separation; `release` says so.
do $$
declare
  v_role text;
begin
  foreach v_role in array array['app_ingress', 'app_worker', 'operator_reader', 'operator'] loop
    if to_regrole(v_role) is null then
      begin
        execute format('create role %I nologin', v_role);
      exception
        when insufficient_privilege then
          raise warning 'role % was not created: %', v_role, sqlerrm;
        when duplicate_object or unique_violation then
          null; -- another database of the cluster created it at this moment
      end;
    end if;
    if to_regrole(v_role) is not null and not pg_has_role(current_user, v_role, 'member') then
      begin
        execute format('grant %I to current_user', v_role);
      exception
        when insufficient_privilege then
          raise warning 'role % cannot be used by %: %', v_role, current_user, sqlerrm;
        when unique_violation or internal_error then
          null; -- granted by another database of the cluster at this moment
      end;
    end if;
  end loop;
end
$$;

create schema app;
create schema admin;
