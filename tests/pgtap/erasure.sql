-- SPDX-License-Identifier: Apache-2.0
-- The proof of an erasure: a request and the digest of each key that was destroyed, without a name or an address.
SELECT no_plan();

SELECT hasnt_column('erasure', 'requests', name, 'no personal data: ' || name) FROM unnest(ARRAY['address', 'name', 'email']) AS name;
SELECT fk_ok('erasure', 'destroyed_keys', 'request', 'erasure', 'requests', 'id', 'a destroyed key names its request');
PREPARE ask(text, text, timestamptz, text) AS INSERT INTO erasure.requests (id, tenant, recipient_id, subjects, address_hashes, ground, requested_by, state, erased_at)
    VALUES ($1, 'acme', 'rcp_1', ARRAY[decode(repeat('00', 16), 'hex')], '{}', $4, 'operator', $2, $3);
SELECT lives_ok($$EXECUTE ask('era_1', 'waiting', NULL, 'article 17')$$, 'an erasure waits');
SELECT throws_ok($$EXECUTE ask('era_1', 'waiting', NULL, 'article 17')$$, '23505', NULL, 'once');
SELECT throws_ok($$EXECUTE ask('era_2', 'waiting', NULL, '')$$, '23514', NULL, 'it has a ground');
SELECT throws_ok($$EXECUTE ask('era_2', 'erased', NULL, 'article 17')$$, '23514', NULL, 'its end has a time');
SELECT throws_ok($$EXECUTE ask('era_2', 'waiting', now(), 'article 17')$$, '23514', NULL, 'and a time is an end');
SELECT throws_ok($$EXECUTE ask('era_2', 'restricted', NULL, 'article 17')$$, '23514', NULL, 'what restricts it is a hold');
SELECT throws_ok($$EXECUTE ask('era_2', 'lost', NULL, 'article 17')$$, '23514', NULL, 'no other state');
SELECT throws_ok($$INSERT INTO erasure.destroyed_keys VALUES ('\x00', 1, 'era_1', NULL, NULL, now(), now())$$, '23514', NULL, 'a subject has 16 bytes');
SELECT * FROM finish();
