-- The public feed's entries.
create view admin.announcements as
  select a.id, a.published_at, a.kind, a.title_en, a.title_ja, a.body_en, a.body_ja, a.price_id from app.announcements a;

comment on view admin.announcements is '@primaryKey id
@foreignKey (price_id) references prices (id)|@fieldName price|@foreignFieldName announcements
@defaultOrder PRIMARY_KEY_DESC
An entry of the public feed. Publishing a changed price writes one.';
comment on column admin.announcements.id is 'The entry''s number.';
comment on column admin.announcements.published_at is '@notNull
When.';
comment on column admin.announcements.kind is '@notNull
price or notice.';
comment on column admin.announcements.title_en is '@notNull
Title in English.';
comment on column admin.announcements.title_ja is '@notNull
Title in Japanese.';
comment on column admin.announcements.body_en is '@notNull
Body in English (markdown).';
comment on column admin.announcements.body_ja is '@notNull
Body in Japanese (markdown).';
comment on column admin.announcements.price_id is '@filterable
The price it announces.';
