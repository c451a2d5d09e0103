-- Everything that PostGraphile sees: views to read and functions to act, made for operators. The schema holds no data, so
-- every release makes it anew, in the one transaction of `release`: no view is ever older than the tables below it.
-- The numbered folders are the order in which its parts build on each other.
drop schema if exists admin cascade;
create schema admin;
comment on schema admin is 'What operators see and do: views and functions only.';

-- The words of arguments; results say the same words as text.
create type admin.account_kind as enum ('personal', 'enterprise');
comment on type admin.account_kind is 'Enterprise accounts wait for an operator''s approval before they may call anything.';
create type admin.language as enum ('en', 'ja');
comment on type admin.language is 'The language of error messages.';
create type admin.grant_kind as enum ('purchase', 'grant', 'adjustment');
comment on type admin.grant_kind is
  'purchase: bought AP, spent first and free of daily caps. grant: given AP. adjustment: a correction, which alone may be negative.';
create type admin.price_unit as enum (
  'per_1k_tokens', 'per_1k_characters', 'per_10_seconds', 'per_image', 'per_second', 'per_call'
);
comment on type admin.price_unit is 'What a price is for. per_1k_tokens has two amounts, in and out; every other unit has one.';
create type admin.request_state as enum ('queued', 'running', 'succeeded', 'failed', 'cancelled', 'expired');
comment on type admin.request_state is 'queued and running requests hold AP; the other states are final.';
