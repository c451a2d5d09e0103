-- What is, or was, in the public gallery.
create view admin.gallery_items as
  select g.asset_id, g.image_id, g.account_id, g.request_id, g.model_id, g.character_id, g.charge_request_id, g.published_at,
         g.withdrawn_at
    from app.gallery_items g;

comment on view admin.gallery_items is '@primaryKey asset_id
@foreignKey (asset_id) references assets (id)|@fieldName asset|@behavior -connection -list
@foreignKey (account_id) references accounts (id)|@fieldName account|@foreignFieldName galleryItems
@foreignKey (request_id) references requests (id)|@fieldName request|@behavior -connection -list
@foreignKey (character_id) references characters (id)|@fieldName character|@foreignFieldName galleryItems
@foreignKey (charge_request_id) references requests (id)|@fieldName chargeRequest|@behavior -connection -list
@defaultOrder PRIMARY_KEY_DESC
A picture that its owner has published. Newest picture first. `takeDownAsset` takes it down for good.';
comment on column admin.gallery_items.asset_id is 'The picture.';
comment on column admin.gallery_items.image_id is '@notNull
The id it has in the gallery.';
comment on column admin.gallery_items.account_id is '@notNull
@filterable
Who published it.';
comment on column admin.gallery_items.request_id is '@notNull
@filterable
The request that made it.';
comment on column admin.gallery_items.model_id is '@notNull
The model that made it.';
comment on column admin.gallery_items.character_id is '@filterable
The character in it.';
comment on column admin.gallery_items.charge_request_id is '@notNull
The request that paid for publishing it.';
comment on column admin.gallery_items.published_at is '@notNull
When it was published, the last time.';
comment on column admin.gallery_items.withdrawn_at is 'When it was taken back, deleted, or taken down; null: it is in the gallery.';
