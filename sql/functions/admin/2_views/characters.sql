-- Characters, removed ones too. Their prompts are their owners' matter.
create view admin.characters as
  select c.id, c.account_id, c.slug, c.name_ja, c.name_en, c.reference_asset_id, c.is_public, c.payee_account_id, c.payee_subject,
         c.royalty_bps, c.created_at, c.removed_at
    from app.characters c;

comment on view admin.characters is '@primaryKey id
@unique slug|@fieldName characterBySlug
@foreignKey (account_id) references accounts (id)|@fieldName account|@foreignFieldName characters
@foreignKey (reference_asset_id) references assets (id)|@fieldName referenceAsset|@behavior -connection -list
@foreignKey (payee_account_id) references accounts (id)|@fieldName payeeAccount|@behavior -connection -list
@defaultOrder PRIMARY_KEY_DESC
A character: a prompt and a picture that go with the requests that name it. Newest first.';
comment on column admin.characters.id is 'The character''s id.';
comment on column admin.characters.account_id is '@notNull
@filterable
The account that registered it.';
comment on column admin.characters.slug is '@notNull
What callers write.';
comment on column admin.characters.name_ja is '@notNull
Its name in Japanese.';
comment on column admin.characters.name_en is '@notNull
Its name in English.';
comment on column admin.characters.reference_asset_id is 'Its picture.';
comment on column admin.characters.is_public is '@notNull
Whether everybody may use it.';
comment on column admin.characters.payee_account_id is 'The account that has a share of what is charged for its use.';
comment on column admin.characters.payee_subject is 'The user that has a share, where it is no account.';
comment on column admin.characters.royalty_bps is '@notNull
The share in hundredths of a percent.';
comment on column admin.characters.created_at is '@notNull
When it was registered.';
comment on column admin.characters.removed_at is 'When its owner or an operator removed it.';
