-- Files that were shown to anybody: what they are, never what is in them.
create view admin.assets as
  select a.id, a.account_id, a.request_id, a.kind, a.position, a.content_type, a.bytes, a.details, a.created_at, a.expires_at,
         a.deleted_at, a.purged_at
    from app.assets a
    where a.state = 'stored';

comment on view admin.assets is '@primaryKey id
@foreignKey (account_id) references accounts (id)|@fieldName account|@foreignFieldName assets
@foreignKey (request_id) references requests (id)|@fieldName request|@foreignFieldName assets
@defaultOrder PRIMARY_KEY_DESC
A file that a request brought forth, or a character''s picture. Newest first.';
comment on column admin.assets.id is 'The file''s id (UUID version 7).';
comment on column admin.assets.account_id is '@notNull
@filterable
Whose it is.';
comment on column admin.assets.request_id is '@filterable
The request that brought it forth; null: a character''s.';
comment on column admin.assets.kind is '@notNull
image, audio, video, preview or character.';
comment on column admin.assets.position is '@notNull
Among those of its kind in the request, from 0.';
comment on column admin.assets.content_type is '@notNull
Its type.';
comment on column admin.assets.bytes is '@notNull
Its size in bytes.';
comment on column admin.assets.details is '@notNull
Width, height, seconds and the like.';
comment on column admin.assets.created_at is '@notNull
When it was made.';
comment on column admin.assets.expires_at is 'When it expires; null: it is kept (published, certified, or a character''s).';
comment on column admin.assets.deleted_at is 'When it was deleted by its owner, or taken down.';
comment on column admin.assets.purged_at is 'Since when its bytes are gone from the store.';
