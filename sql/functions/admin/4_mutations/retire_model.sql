-- Takes a model out of the catalogue; requests that name it keep it.
create function admin.retire_model(p_model text) returns admin.models
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before app.models;
  v_after app.models;
  v_result admin.models;
begin
  select * into v_before from app.models m where m.id = p_model for update;
  if not found then
    raise exception 'no such model' using errcode = 'no_data_found';
  end if;
  if v_before.retired_at is null then
    update app.models m set retired_at = now() where m.id = p_model returning * into v_after;
    perform app.audit(app.current_operator(), 'retire_model', 'model', p_model, to_jsonb(v_before), to_jsonb(v_after));
  end if;
  select * into v_result from admin.models m where m.id = p_model;
  return v_result;
end
$$;
comment on function admin.retire_model is '@resultFieldName model
Takes a model out of the catalogue: it is offered no more. Importing a catalogue that has it brings it back.';
