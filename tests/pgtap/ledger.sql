-- SPDX-License-Identifier: Apache-2.0
-- The tables that keep a mail from being sent twice, and a key from being used after it was destroyed.
SELECT no_plan();

SELECT col_is_pk('ingest', 'idempotency_keys', ARRAY['tenant_id', 'scope', 'idempotency_key']::name[], 'idempotency_keys has its key');
SELECT lives_ok($$INSERT INTO ingest.idempotency_keys VALUES ('acme', 'evt', 'key', '\x00', 202, '', now())$$, 'an idempotency key is taken');
SELECT throws_ok($$INSERT INTO ingest.idempotency_keys VALUES ('acme', 'evt', 'key', '\x01', 202, '', now())$$, '23505', NULL, 'once');
SELECT lives_ok($$INSERT INTO ingest.idempotency_keys VALUES ('beta', 'evt', 'key', '\x00', 202, '', now())$$, 'for each tenant');

SELECT col_is_pk('dispatcher', 'ledger', ARRAY['created_at', 'notification_id', 'attempt']::name[], 'ledger has its key');
SELECT has_index('dispatcher', 'ledger', 'ledger_open', 'what has no outcome is found without reading the ledger');
PREPARE claim(text, integer) AS INSERT INTO dispatcher.ledger (created_at, notification_id, attempt, tenant_id, state, owner, lease_until, claimed_at)
    VALUES (date_trunc('day', now()), 'ntf_1', $2, 'acme', $1, 'one', now(), now());
SELECT lives_ok($$EXECUTE claim('claimed', 1)$$, 'an attempt is claimed in the partition of its month');
SELECT throws_ok($$EXECUTE claim('claimed', 1)$$, '23505', NULL, 'once');
SELECT lives_ok($$EXECUTE claim('claimed', 2)$$, 'the next attempt is another');
SELECT throws_ok($$EXECUTE claim('done', 3)$$, '23514', NULL, 'a state is one of those that the dispatcher knows');
SELECT throws_ok($$EXECUTE claim('claimed', 0)$$, '23514', NULL, 'attempts begin at 1');
SELECT throws_ok($$UPDATE dispatcher.ledger SET settled_at = now()$$, '23514', NULL, 'who settled an attempt stands with the time');

SELECT lives_ok($$UPDATE dispatcher.ledger SET vendor = 'postmark', credential = 'main', vendor_key = 'k', reply_class = 'config', next_step = 'fallback'$$,
    'a claim says at which vendor it is, and with which credential');
SELECT throws_ok($$UPDATE dispatcher.ledger SET reply_class = 'odd'$$, '23514', NULL, 'a vendor''s answer is of a known class');
SELECT throws_ok($$UPDATE dispatcher.ledger SET next_step = 'odd'$$, '23514', NULL, 'and so is what the next attempt is for');

SELECT col_is_pk('dispatcher', 'budget', 'key', 'a limit has one row');
SELECT throws_ok($$INSERT INTO dispatcher.budget VALUES ('k', now(), 0)$$, '23514', NULL, 'a penalty leaves something');
SELECT is(dispatcher.budget_pace(1, NULL), 1::double precision, 'what was never throttled has its full pace');
SELECT is(round(dispatcher.budget_pace(0.7::real, now() - interval '35 seconds')::numeric, 2), 0.85, 'it comes back by a twentieth each ten seconds');
SELECT is(dispatcher.budget_pace(0.7::real, now() - interval '1 hour'), 1::double precision, 'and never above the limit');

SELECT col_is_pk('keys', 'data_keys', ARRAY['subject', 'generation']::name[], 'data_keys has its key');
SELECT throws_ok($$INSERT INTO keys.data_keys VALUES ('acme', decode(repeat('00', 16), 'hex'), 1, NULL)$$, '23514', NULL, 'a key without its bytes is destroyed');
SELECT throws_ok($$INSERT INTO keys.data_keys VALUES ('acme', decode(repeat('00', 16), 'hex'), 1, decode(repeat('00', 66), 'hex'), now(), now())$$,
    '23514', NULL, 'and a destroyed key has no bytes');
SELECT * FROM finish();
