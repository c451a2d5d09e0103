-- Enterprise accounts that wait for an operator, longest first.
create function admin.accounts_awaiting_approval() returns setof admin.accounts
language sql stable
as $$
  select a.* from admin.accounts a where a.kind = 'enterprise' and a.approved_at is null order by a.created_at
$$;
comment on function admin.accounts_awaiting_approval is 'Enterprise accounts that wait for approval, longest first.';
