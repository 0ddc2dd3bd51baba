-- SPDX-License-Identifier: Apache-2.0
-- The search index: keys only, by day, isolated, and none but its owner can take it back.
SELECT no_plan();

SELECT columns_are('find', 'entries', ARRAY['tenant_id', 'kind', 'key', 'created_at', 'notification_id']::name[], 'no value in clear');
SELECT col_type_is('find', 'entries', 'key', 'bigint', 'a key is eight bytes');
SELECT has_index('find', 'entries', 'entries_key', ARRAY['key', 'created_at']::name[], 'by key, then time');
SELECT is((SELECT relrowsecurity FROM pg_class WHERE oid = 'find.entries'::regclass), true, 'a tenant sees its own entries');
SELECT is((SELECT count(*) FROM pg_inherits WHERE inhparent = 'find.entries'::regclass), 4::bigint, 'yesterday to the day after tomorrow');
SELECT throws_ok($$SELECT find.ensure_days(now(), 'infinity')$$, 'P0001', NULL, 'no days without an end');
SELECT throws_ok($$SELECT find.ensure_days(now(), now() + interval '8 days')$$, 'P0001', NULL, 'nor of next month');
SELECT is(find.ensure_days(now() - interval '3 days', now()), 2, 'what is missing is made');
SELECT is(find.ensure_days(now() - interval '3 days', now()), 0, 'once');
SELECT is(find.drop_days(now() - interval '1 day', 1), 1, 'days that are over are dropped, at most so many');
SELECT ok(NOT has_function_privilege('stentor_gateway', 'find.rewind(timestamptz)', 'EXECUTE'), 'only the owner takes it back');
SELECT ok(NOT has_table_privilege('stentor_gateway', 'find.entries', 'UPDATE, DELETE, TRUNCATE'), 'entries are only added');
SELECT * FROM finish();
