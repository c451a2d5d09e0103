-- Accounts with their balances; an account that has not been called yet has no balance row and shows zeros.
create view admin.accounts as
  select a.id, a.name, a.kind, a.subject, a.language, a.card_on_file, a.approved_at, a.allowed_models, a.created_at,
         coalesce(b.balance_ap, 0) as balance_ap,
         coalesce(b.held_ap, 0) as held_ap,
         coalesce(b.balance_ap - b.held_ap, 0) as available_ap,
         coalesce(b.purchased_ap, 0) as purchased_ap,
         b.initial_grant_at
    from app.accounts a
    left join app.balances b on b.account_id = a.id;

comment on view admin.accounts is '@primaryKey id
@unique subject|@fieldName accountBySubject
@defaultOrder CREATED_AT_DESC
An account: who pays. Newest first.';
comment on column admin.accounts.id is 'The account''s id.';
comment on column admin.accounts.name is '@notNull
What people call it.';
comment on column admin.accounts.kind is '@notNull
personal or enterprise.';
comment on column admin.accounts.subject is '@filterable
The user (a user token''s sub) it belongs to, if any.';
comment on column admin.accounts.language is 'en or ja: the language of its error messages; null: as the caller asks.';
comment on column admin.accounts.card_on_file is '@notNull
Whether a payment card is on file.';
comment on column admin.accounts.approved_at is 'When an operator approved it (enterprise accounts).';
comment on column admin.accounts.allowed_models is 'The only models it may use; null: every model.';
comment on column admin.accounts.created_at is '@notNull
@sortable
When it was opened.';
comment on column admin.accounts.balance_ap is '@notNull
AP on the account, held ones included.';
comment on column admin.accounts.held_ap is '@notNull
AP held by requests that are not finished.';
comment on column admin.accounts.available_ap is '@notNull
AP that can be spent: balance less held.';
comment on column admin.accounts.purchased_ap is '@notNull
The part of the balance that was bought.';
comment on column admin.accounts.initial_grant_at is 'When the initial grant was given.';
