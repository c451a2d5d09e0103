-- Operators' tokens without their hashes.
create view admin.operator_tokens as
  select t.id, t.name, t.role, t.created_at, t.revoked_at from app.operator_tokens t;

comment on view admin.operator_tokens is '@primaryKey id
A token for this interface. Issued with `svc admin-token issue`.';
comment on column admin.operator_tokens.id is 'The token''s id.';
comment on column admin.operator_tokens.name is '@notNull
Whose it is.';
comment on column admin.operator_tokens.role is '@notNull
reader or operator.';
comment on column admin.operator_tokens.created_at is '@notNull
When it was issued.';
comment on column admin.operator_tokens.revoked_at is 'When it was revoked.';
