-- SPDX-License-Identifier: Apache-2.0
-- The catalogue of object storage: a unit moves along one line, and each move is in a journal that is chained by hash.
SELECT no_plan();

SELECT tables_are('archive_restore', ARRAY[]::name[], 'nothing is being restored');
SELECT tables_are('archive_drop', ARRAY[]::name[], 'nor dropped');
SELECT is((SELECT count(*) FROM archive.installation), 1::bigint, 'a database is one installation');
SELECT throws_ok('INSERT INTO archive.installation (single) VALUES (true)', '23505', NULL, 'and never two');
SELECT set_eq('SELECT parent FROM archive.kinds', ARRAY['archiver.notifications', 'archiver.delivery_attempts', 'order_saga.order_archive',
    'order_saga.order_transitions'], 'these tables are archived');
PREPARE unit(text, text) AS INSERT INTO archive.units (id, kind, class, starts_at, ends_at, owner_epoch)
    VALUES ($1, 'notifications', $2, '2020-01-01Z', '2020-02-01Z', (SELECT owner_epoch FROM archive.installation));
SELECT lives_ok($$EXECUTE unit('notifications/record/2020-01', 'R')$$, 'a unit begins as open');
SELECT throws_ok($$EXECUTE unit('notifications/other/2020-01', 'X')$$, '23514', NULL, 'of one of three classes');
PREPARE move(text) AS UPDATE archive.units SET state = $1 WHERE id = 'notifications/record/2020-01';
SELECT throws_ok($$EXECUTE move('committed')$$, '23514', NULL, 'it skips no step');
SELECT throws_ok($$EXECUTE move('expired')$$, '23514', NULL, 'and is not expired before it is archived');
SELECT lives_ok($$EXECUTE move('sealed')$$, 'it is sealed');
SELECT throws_ok($$EXECUTE move('open')$$, '23514', NULL, 'and never opened again');
SELECT is((SELECT count(*) FROM archive.journal WHERE unit = 'notifications/record/2020-01' AND what = 'unit sealed'), 1::bigint, 'the journal has it');
SELECT is(archive.journal_fault(), NULL, 'each entry follows from the one before');
UPDATE archive.journal SET what = 'unit expired' WHERE what = 'unit sealed';
SELECT isnt(archive.journal_fault(), NULL, 'and a changed one is found');
SELECT * FROM finish();
