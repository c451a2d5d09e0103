-- Providers: the name of the credential's variable, never the credential.
create view admin.providers as
  select p.name, p.kind, p.base_url, p.credential_env, p.created_at from app.providers p;

comment on view admin.providers is '@primaryKey name
Where models are served from. Changed by importing a catalogue.';
comment on column admin.providers.name is 'Its name in the catalogue.';
comment on column admin.providers.kind is '@notNull
openai (any server of that convention), elevenlabs, x or sandbox.';
comment on column admin.providers.base_url is 'Its address.';
comment on column admin.providers.credential_env is 'The name of the environment variable that holds its credential; never the credential.';
comment on column admin.providers.created_at is '@notNull
When it came into the catalogue.';
