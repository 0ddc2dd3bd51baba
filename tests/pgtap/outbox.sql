-- SPDX-License-Identifier: Apache-2.0
-- What the relay keeps next to an application's outbox tables.
SELECT no_plan();

SELECT tables_are('stentor_outbox', ARRAY['source', 'claims', 'requests', 'pending_feedback', 'rejected_rows', 'initialised_mappings', 'published',
    'positions']);
SELECT is((SELECT count(*) FROM stentor_outbox.source), 1::bigint, 'a database has one source');
SELECT throws_ok('INSERT INTO stentor_outbox.source DEFAULT VALUES', '23505', NULL, 'and never a second one');
SELECT col_is_pk('stentor_outbox', 'requests', ARRAY['mapping', 'row_key', 'attempt']::name[], 'requests has its key');
SELECT has_column('stentor_outbox', 'requests', 'row_xmin', 'who wrote a row that is shown as pending');
PREPARE note(text, integer, text, text) AS INSERT INTO stentor_outbox.requests (mapping, row_key, attempt, notification_id, state, made_at)
    VALUES ('memo', $1, $2, $3, $4, now());
SELECT lives_ok($$EXECUTE note('row', 1, 'ntf_1', 'noted')$$, 'a request of a row');
SELECT lives_ok($$EXECUTE note('row', 2, 'ntf_2', 'retrying')$$, 'and its next one');
SELECT throws_ok($$EXECUTE note('row', 2, 'ntf_3', 'noted')$$, '23505', NULL, 'each once');
SELECT throws_ok($$EXECUTE note('other', 1, 'ntf_1', 'noted')$$, '23505', NULL, 'an id belongs to one row');
SELECT throws_ok($$EXECUTE note('other', 1, 'ntf_4', 'pending')$$, '23514', NULL, 'no other state');
SELECT throws_ok($$EXECUTE note('other', 0, 'ntf_5', 'noted')$$, '23514', NULL, 'requests begin at 1');
SELECT * FROM finish();
