-- Tells ingresses and workers to read the catalogue again.
create or replace function app.notify_catalogue() returns trigger
language plpgsql
as $$
begin
  perform pg_notify('svc_catalogue', '');
  return null;
end
$$;
create or replace trigger _500_tell_everybody after insert or update or delete on app.providers
  for each statement execute function app.notify_catalogue();
create or replace trigger _500_tell_everybody after insert or update or delete on app.models
  for each statement execute function app.notify_catalogue();
create or replace trigger _500_tell_everybody after insert or update or delete on app.routes
  for each statement execute function app.notify_catalogue();
create or replace trigger _500_tell_everybody after insert on app.prices
  for each statement execute function app.notify_catalogue();
create or replace trigger _500_tell_everybody after insert or update or delete on app.voices
  for each statement execute function app.notify_catalogue();
