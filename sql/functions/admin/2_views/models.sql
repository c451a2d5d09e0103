-- Models, the retired ones too.
create view admin.models as
  select m.id, m.type, m.max_tokens, m.context_tokens, m.recommended, m.retired_at, m.created_at from app.models m;

comment on view admin.models is '@primaryKey id
A model that can be asked for. Changed by importing a catalogue; retired ones stay, for the requests that name them.';
comment on column admin.models.id is 'Its id, as callers write it.';
comment on column admin.models.type is '@notNull
chat, speech, transcription, image, video or gateway.';
comment on column admin.models.max_tokens is 'The most tokens of output (chat).';
comment on column admin.models.context_tokens is 'The most tokens of input and output together (chat).';
comment on column admin.models.recommended is '@notNull
Shown first to callers.';
comment on column admin.models.retired_at is 'When it was taken out of the catalogue; null: it is offered.';
comment on column admin.models.created_at is '@notNull
When it came into the catalogue.';
