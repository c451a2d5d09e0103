-- Which provider serves which model, in which order.
create view admin.routes as
  select r.model_id, r.provider, r.upstream_model, r.priority, r.weight from app.routes r;

comment on view admin.routes is '@primaryKey model_id,provider,upstream_model
@foreignKey (model_id) references models (id)|@fieldName model|@foreignFieldName routes
@foreignKey (provider) references providers (name)|@fieldName provider|@foreignFieldName routes
A way to serve a model. A failure that may pass falls over to the next route.';
comment on column admin.routes.model_id is '@filterable
The model.';
comment on column admin.routes.provider is '@name provider_name
@filterable
The provider''s name.';
comment on column admin.routes.upstream_model is 'What the provider calls the model.';
comment on column admin.routes.priority is '@notNull
Lower is tried first.';
comment on column admin.routes.weight is '@notNull
Routes of one priority share the load by weight.';
