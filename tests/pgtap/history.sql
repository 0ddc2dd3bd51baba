-- SPDX-License-Identifier: Apache-2.0
-- History: a row for each notification and attempt in the table of its class and month, and what finds them again.
SELECT no_plan();

SELECT col_is_pk('archiver', 'notifications', ARRAY['created_at', 'id', 'tenant_id', 'retention_class']::name[], 'notifications has its key');
SELECT col_is_pk('archiver', 'delivery_attempts', ARRAY['created_at', 'notification_id', 'attempt_number', 'tenant_id', 'retention_class']::name[],
    'delivery_attempts has its key');
SELECT has_column('archiver', 'notifications', name, name || ' of document B') FROM unnest(ARRAY['template_version', 'locale', 'source_event_id',
    'correlation_id', 'address_hash', 'scheduled_for', 'sent_at', 'delivered_at', 'opened_at', 'clicked_at']) AS name;
SELECT has_index('archiver', tab, name, name || ' finds it') FROM (VALUES ('notifications', 'notifications_batch'),
    ('notifications', 'notifications_digest'), ('notifications', 'notifications_copy'), ('notifications', 'notifications_correlation'),
    ('notifications', 'notifications_source_event'), ('delivery_attempts', 'attempts_vendor_message')) AS i (tab, name);

PREPARE note(text, text, text) AS INSERT INTO archiver.notifications (created_at, retention_class, id, tenant_id, channel, status, status_rank)
    VALUES (date_trunc('day', now()), $1, $2, 'acme', 'email', $3, 1);
SELECT lives_ok($$EXECUTE note('R', 'ntf_1', 'sent')$$, 'a notification goes into the table of its class and month');
SELECT is((SELECT tableoid::regclass::text FROM archiver.notifications WHERE id = 'ntf_1'),
    'archiver.notifications_record_' || to_char(now() AT TIME ZONE 'UTC', '"y"YYYY"m"MM'), 'which is this one');
SELECT throws_ok($$EXECUTE note('R', 'ntf_1', 'sent')$$, '23505', NULL, 'once');
SELECT throws_ok($$EXECUTE note('R', 'ntf_2', 'read')$$, '23514', NULL, 'a status is one of the lattice');
SELECT throws_ok($$EXECUTE note('X', 'ntf_2', 'sent')$$, '23514', NULL, 'a class is one of three');
SELECT cmp_ok((SELECT count(*) FROM pg_partition_tree('archiver.notifications_record') WHERE isleaf), '>=', 13::bigint,
    'months are made a year ahead');
SELECT throws_ok(format($$INSERT INTO archiver.delivery_attempts (created_at, notification_id, attempt_number, id, tenant_id, channel, vendor, outcome)
    VALUES (now(), 'ntf_1', 1, 'dat_1', 'acme', 'email', 'smtp', %L)$$, 'lost'), '23514', NULL, 'an outcome is one of those of an attempt');
SELECT * FROM finish();
