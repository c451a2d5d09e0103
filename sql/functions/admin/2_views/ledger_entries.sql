-- The ledger: rows never change.
create view admin.ledger_entries as
  select l.id, l.account_id, l.kind, l.amount_ap, l.balance_after_ap, l.request_id, l.reason, l.actor, l.created_at
    from app.ledger_entries l;

comment on view admin.ledger_entries is '@primaryKey id
@foreignKey (account_id) references accounts (id)|@fieldName account|@foreignFieldName ledgerEntries
@foreignKey (request_id) references requests (id)|@fieldName request|@behavior -connection -list
@defaultOrder PRIMARY_KEY_DESC
One movement of AP on an account. Newest first.';
comment on column admin.ledger_entries.id is 'The entry''s number.';
comment on column admin.ledger_entries.account_id is '@notNull
@filterable
The account.';
comment on column admin.ledger_entries.kind is '@notNull
initial_grant, grant, purchase, adjustment, charge or refund.';
comment on column admin.ledger_entries.amount_ap is '@notNull
Positive: into the account; negative: out of it.';
comment on column admin.ledger_entries.balance_after_ap is '@notNull
The balance after it.';
comment on column admin.ledger_entries.request_id is 'The request that was charged or refunded.';
comment on column admin.ledger_entries.reason is 'Why, in an operator''s words.';
comment on column admin.ledger_entries.actor is '@notNull
system, cli, or the operator.';
comment on column admin.ledger_entries.created_at is '@notNull
When.';
