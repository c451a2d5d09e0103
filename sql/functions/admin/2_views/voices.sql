-- Voices for speech.
create view admin.voices as
  select v.slug, v.name, v.tagline, v.provider, v.upstream_voice, v.model_id from app.voices v;

comment on view admin.voices is '@primaryKey slug
@foreignKey (model_id) references models (id)|@fieldName model|@foreignFieldName voices
@foreignKey (provider) references providers (name)|@fieldName provider|@foreignFieldName voices
A voice for speech. Changed by importing a catalogue.';
comment on column admin.voices.slug is 'Its id, as callers write it.';
comment on column admin.voices.name is '@notNull
Its name.';
comment on column admin.voices.tagline is '@notNull
A few words about it.';
comment on column admin.voices.provider is '@name provider_name
@notNull
@filterable
The provider''s name.';
comment on column admin.voices.upstream_voice is '@notNull
What the provider calls it.';
comment on column admin.voices.model_id is '@notNull
@filterable
The speech model it speaks with.';
