-- Writes a notice for the public feed, which is not served yet: only operators read it (announcements).
create function admin.announce(p_title_en text, p_title_ja text, p_body_en text, p_body_ja text) returns admin.announcements
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_id bigint;
  v_result admin.announcements;
begin
  if '' in (trim(p_title_en), trim(p_title_ja), trim(p_body_en), trim(p_body_ja)) then
    raise exception 'a notice needs a title and a body in both languages' using errcode = 'invalid_parameter_value';
  end if;
  insert into app.announcements (kind, title_en, title_ja, body_en, body_ja)
    values ('notice', p_title_en, p_title_ja, p_body_en, p_body_ja)
    returning id into v_id;
  select * into v_result from admin.announcements a where a.id = v_id;
  perform app.audit(app.current_operator(), 'announce', 'announcement', v_id::text, null, to_jsonb(v_result));
  return v_result;
end
$$;
comment on function admin.announce is '@resultFieldName announcement
Writes a notice for the public feed, in both languages (markdown). The feed is not served yet: until it is, only operators read it.';
