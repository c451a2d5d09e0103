-- Prices, past, present and coming, with what is in force at this moment marked.
create view admin.prices as
  select p.id, p.model_id, p.unit, p.ap_in_per_1k, p.ap_out_per_1k, p.ap, p.size, p.quality, p.announced_at, p.effective_at,
         p.effective_at <= now() and not exists (
           select from app.prices n
             where n.model_id = p.model_id and n.size = p.size and n.quality = p.quality
               and n.effective_at > p.effective_at and n.effective_at <= now()
         ) as is_in_force,
         p.effective_at > now() as is_coming
    from app.prices p;

comment on view admin.prices is '@primaryKey id
@foreignKey (model_id) references models (id)|@fieldName model|@foreignFieldName prices
@defaultOrder PRIMARY_KEY_DESC
A price of a model, for a size and quality where it has them. Rows never change: a new price is a new row.';
comment on column admin.prices.id is 'The price''s number.';
comment on column admin.prices.model_id is '@notNull
@filterable
The model.';
comment on column admin.prices.unit is '@notNull
per_1k_tokens, per_1k_characters, per_10_seconds, per_image, per_second or per_call.';
comment on column admin.prices.ap_in_per_1k is 'AP for 1,000 tokens of input (per_1k_tokens).';
comment on column admin.prices.ap_out_per_1k is 'AP for 1,000 tokens of output (per_1k_tokens).';
comment on column admin.prices.ap is 'AP for one unit (every other unit).';
comment on column admin.prices.size is '@notNull
The size it is for; empty where the model has none.';
comment on column admin.prices.quality is '@notNull
The quality it is for; empty where the model has none.';
comment on column admin.prices.announced_at is '@notNull
When it was announced.';
comment on column admin.prices.effective_at is '@notNull
When it takes effect: for an increase, seven days after it was announced at the earliest.';
comment on column admin.prices.is_in_force is '@notNull
Whether requests made now are charged by it.';
comment on column admin.prices.is_coming is '@notNull
Whether it has yet to take effect.';
