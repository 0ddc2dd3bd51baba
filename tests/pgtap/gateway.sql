-- SPDX-License-Identifier: Apache-2.0
-- What the API keeps of its callers: the last use of each key, links and sessions of the console by their hashes.
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
SELECT throws_ok($$INSERT INTO gateway.sessions (token_hash, id, user_name, role, tenants, made_by, idle_seconds, expires_at)
    VALUES ('\x01', 'ses_1', 'ada', 'viewer', '{acme}', 'x', 60, now())$$, '23514', NULL, 'a session is known by a SHA-256');
SELECT throws_ok($$INSERT INTO gateway.sessions (token_hash, id, user_name, role, tenants, made_by, idle_seconds, expires_at)
    VALUES (decode(repeat('01', 32), 'hex'), 'ses_1', 'ada', 'viewer', '{}', 'x', 60, now())$$, '23514', NULL, 'a session has a tenant');
SET ROLE stentor_ingest;
SELECT throws_ok($$INSERT INTO gateway.sessions (token_hash) VALUES ('\x01')$$, '42501', NULL, 'ingest makes no session');
SELECT throws_ok($$SELECT * FROM gateway.logins$$, '42501', NULL, 'and reads no link');
RESET ROLE;
SELECT * FROM finish();
