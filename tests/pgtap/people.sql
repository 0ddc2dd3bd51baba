-- SPDX-License-Identifier: Apache-2.0
-- Recipients as documents B and C have them: addresses as hash and ciphertext, preferences and consents by category and channel.
SELECT no_plan();

SELECT tables_are('people', ARRAY['recipients', 'addresses', 'preferences', 'consents', 'labels', 'positions']);
SELECT col_is_pk('people', 'recipients', ARRAY['recipient_id', 'tenant_id']::name[], 'recipients has its key');
SELECT hasnt_column('people', 'addresses', name, 'no address in clear: ' || name) FROM unnest(ARRAY['email', 'phone', 'plain']) AS name;
SELECT col_type_is('people', 'addresses', 'address', 'bytea', 'an address is sealed');
SELECT has_index('people', 'addresses', 'addresses_hash', 'and found by its hash');
PREPARE address(text, text, text) AS INSERT INTO people.addresses VALUES ('acme', $1, $2, '\x01', '\x02', $3, true, true, NULL, 0);
SELECT lives_ok($$EXECUTE address('rcp_1', 'email', 'active')$$, 'an address');
SELECT throws_ok($$EXECUTE address('rcp_1', 'email', 'active')$$, '23505', NULL, 'once for a recipient');
SELECT lives_ok($$EXECUTE address('rcp_2', 'email', 'active')$$, 'a family may share one (the tenant decides: shared_addresses)');
SELECT throws_ok($$EXECUTE address('rcp_3', 'pigeon', 'active')$$, '23514', NULL, 'a channel is one of seven');
SELECT throws_ok($$EXECUTE address('rcp_3', 'email', 'lost')$$, '23514', NULL, 'a status is one of three');
PREPARE preference(text, text) AS INSERT INTO people.preferences VALUES ('acme', 'rcp_1', $1, 'any', false, $2, 480, 1, false, now(), 1);
SELECT lives_ok($$EXECUTE preference('marketing', 'weekly')$$, 'a preference');
SELECT throws_ok($$EXECUTE preference('marketing', 'daily')$$, '23505', NULL, 'once for each category and channel');
SELECT throws_ok($$EXECUTE preference('gossip', 'daily')$$, '23514', NULL, 'a category is one of ten');
SELECT throws_ok($$EXECUTE preference('social', 'yearly')$$, '23514', NULL, 'a frequency is one of four');
PREPARE label(text) AS INSERT INTO people.labels VALUES ('acme', 'rcp_1', $1);
SELECT lives_ok($$EXECUTE label('admin')$$, 'a label');
SELECT throws_ok($$EXECUTE label('admin')$$, '23505', NULL, 'once for a recipient');
SELECT * FROM finish();
