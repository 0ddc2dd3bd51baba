-- SPDX-License-Identifier: Apache-2.0
-- In-app inboxes: items with sealed content by the keyed hash of an address, counters that never fall below nothing.
SELECT no_plan();

SELECT hasnt_column('feed', 'items', name, 'no content and no address in clear: ' || name) FROM unnest(ARRAY['title', 'body', 'address']) AS name;
SELECT col_is_pk('feed', 'items', ARRAY['recipient', 'notification_id', 'tenant_id']::name[], 'an item is in one inbox once');
SELECT is((SELECT count(*) FROM pg_inherits WHERE inhparent = 'feed.items'::regclass), 16::bigint, 'sixteen parts');
PREPARE item(text, text) AS INSERT INTO feed.items (tenant_id, recipient, notification_id, category, template, key_subject, content, created_at,
    placed_at, stored_sequence, sequence)
    VALUES ('acme', decode(repeat('ab', 32), 'hex'), $1, $2, 'hello', decode(repeat('01', 16), 'hex'), '\x01', now(), now(), 1, 1);
SELECT lives_ok($$EXECUTE item('ntf_1', 'social')$$, 'an item');
SELECT throws_ok($$EXECUTE item('ntf_1', 'social')$$, '23505', NULL, 'once');
SELECT throws_ok($$EXECUTE item('ntf_2', 'gossip')$$, '23514', NULL, 'a category is one of ten');
SELECT throws_ok($$INSERT INTO feed.counters VALUES ('acme', decode(repeat('ab', 32), 'hex'), 'social', -1, 0, 0, 1)$$, '23514', NULL,
                 'a count below nothing');
SELECT throws_ok($$INSERT INTO feed.statuses VALUES ('acme', 'ntf_1', 'sent', 'social', now())$$, '23514', NULL, 'an inbox tells three statuses');
SELECT is(feed.drop_old(now() - interval '1 day', 10), 0::bigint, 'a new item is not too old');
SELECT is((SELECT count(*) FROM feed.due(10)), 0::bigint, 'nor is its time over');
SELECT * FROM finish();
