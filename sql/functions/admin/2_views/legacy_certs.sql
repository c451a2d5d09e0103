-- Certificates of before this service.
create view admin.legacy_certs as
  select l.number, l.status, l.title, l.holder_name, l.event, l.issued_on, l.details, l.imported_at from app.legacy_certs l;

comment on view admin.legacy_certs is '@primaryKey number
@defaultOrder PRIMARY_KEY_DESC
A certificate of before this service: callers verify it as legacy-NUMBER.';
comment on column admin.legacy_certs.number is 'Its number.';
comment on column admin.legacy_certs.status is '@notNull
issued or revoked.';
comment on column admin.legacy_certs.title is 'What was certified.';
comment on column admin.legacy_certs.holder_name is 'To whom.';
comment on column admin.legacy_certs.event is 'On what occasion.';
comment on column admin.legacy_certs.issued_on is 'When.';
comment on column admin.legacy_certs.details is '@notNull
What else it says, as an object.';
comment on column admin.legacy_certs.imported_at is '@notNull
When it was imported, the last time.';
