-- Accounts by what a person has at hand: id, subject, or the beginning of the name in any case. Each by its index.
create function admin.search_accounts(p_text text) returns setof admin.accounts
language sql stable
as $$
  select a.* from admin.accounts a
    where a.id = case when p_text ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then p_text::uuid end
       or a.subject = p_text
       or (lower(a.name) ~>=~ lower(p_text) and lower(a.name) ~<~ (lower(p_text) || U&'\+10FFFF'))
    order by a.name, a.id
$$;
comment on function admin.search_accounts is 'Accounts by id, by subject, or by the beginning of their name.';
