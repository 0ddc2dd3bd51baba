-- SPDX-License-Identifier: Apache-2.0
-- What the API keeps of its callers: the last use of each key.
SELECT no_plan();

SELECT col_is_pk('gateway', 'key_usage', ARRAY['tenant_id', 'key_id']::name[], 'a key has one row');
SELECT lives_ok($$INSERT INTO gateway.key_usage VALUES ('acme', 'k1', '2026-05-02')$$, 'a use');
SELECT throws_ok($$INSERT INTO gateway.key_usage VALUES ('acme', 'k1', '2026-05-03')$$, '23505', NULL, 'one row');
SELECT throws_ok($$INSERT INTO gateway.key_usage VALUES ('acme', 'k2', NULL)$$, '23502', NULL, 'a use has a time');
SET ROLE stentor_ingest;
SELECT set_config('app.tenant_id', 'other', true);
SELECT is((SELECT count(*) FROM gateway.key_usage), 0::bigint, 'another tenant''s keys are not there');
SELECT set_config('app.tenant_id', 'acme', true);
SELECT is((SELECT count(*) FROM gateway.key_usage), 1::bigint, 'the tenant''s own are');
SELECT throws_ok($$DELETE FROM gateway.key_usage$$, '42501', NULL, 'no service removes a use');
RESET ROLE;
SELECT * FROM finish();
