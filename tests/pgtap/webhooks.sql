-- SPDX-License-Identifier: Apache-2.0
-- Deliveries to tenants' endpoints: a status goes to a subscription once, in one of five states; a delivery goes by age, whatever its state.
SELECT no_plan();

SELECT col_is_pk('webhooks', 'deliveries', 'id', 'a delivery is one row');
SELECT col_is_pk('webhooks', 'endpoints', ARRAY['tenant_id', 'subscription_id'], 'so is an endpoint');
PREPARE deliver(text, text, timestamptz) AS INSERT INTO webhooks.deliveries (id, tenant_id, subscription_id, event_id, event_type,
    notification_id, sequence, payload, ordered, created_at, state, turn, attempt)
    VALUES ($1, 'acme', 'whs_1', 'e', 'notification.sent', 'ntf_1', 1, '{}', false, $3, $2, 1, 0);
SELECT lives_ok($$EXECUTE deliver('whd_1', 'claimed', now())$$, 'a delivery is claimed');
SELECT throws_ok($$EXECUTE deliver('whd_1', 'claimed', now())$$, '23505', NULL, 'once');
SELECT throws_ok($$EXECUTE deliver('whd_2', 'lost', now())$$, '23514', NULL, 'no other state');
SELECT lives_ok($$EXECUTE deliver('whd_3', 'delivered', now() - interval '91 days')$$, 'an old one');
SELECT results_eq($$SELECT dropped FROM webhooks.drop_deliveries(NULL, '90 days', NULL, 10)$$, ARRAY[1::bigint], 'goes');
SELECT results_eq($$SELECT id COLLATE "default" FROM webhooks.deliveries$$, ARRAY['whd_1'], 'alone');
SELECT results_eq($$SELECT dropped FROM webhooks.drop_deliveries('other', '-1 days', NULL, 10)$$, ARRAY[0::bigint], 'another tenant''s stay');
SELECT lives_ok($$EXECUTE deliver('whd_4', 'claimed', now() - interval '91 days')$$, 'an old one');
SELECT lives_ok($$UPDATE webhooks.deliveries SET finished_at = created_at, claimed_at = now() WHERE id = 'whd_4'$$, 'that is posted again now');
SELECT results_eq($$SELECT dropped FROM webhooks.drop_deliveries(NULL, '90 days', NULL, 10)$$, ARRAY[0::bigint], 'stays: its outcome has a row to go to');
SELECT lives_ok($$UPDATE webhooks.deliveries SET state = 'delivered', claimed_at = created_at WHERE id = 'whd_4'$$, 'one that ended');
SELECT results_eq($$SELECT dropped FROM webhooks.drop_deliveries(NULL, '90 days', NULL, 10)$$, ARRAY[1::bigint], 'goes');
SELECT lives_ok($$INSERT INTO webhooks.endpoints (tenant_id, subscription_id, failures, updated_at) VALUES ('acme', 'whs_1', 3, now() - interval '91 days')$$, 'an endpoint');
SELECT results_eq($$SELECT dropped FROM webhooks.drop_endpoints(NULL, '90 days', NULL, 10)$$, ARRAY[1::bigint], 'of which nothing was heard goes');
SELECT col_is_pk('webhooks', 'categories', ARRAY['tenant_id', 'notification_id'], 'a notification has one category');
PREPARE categorise(text, timestamptz) AS INSERT INTO webhooks.categories (tenant_id, notification_id, category, seen_at) VALUES ('acme', $1, 'billing', $2);
SELECT lives_ok($$EXECUTE categorise('ntf_1', now())$$, 'it is kept');
SELECT lives_ok($$EXECUTE categorise('ntf_2', now() - interval '91 days')$$, 'one that nothing says any more');
SELECT results_eq($$SELECT dropped FROM webhooks.drop_categories('other', '90 days', NULL, 10)$$, ARRAY[0::bigint], 'stays when another tenant''s go');
SELECT results_eq($$SELECT dropped FROM webhooks.drop_categories(NULL, '90 days', NULL, 10)$$, ARRAY[1::bigint], 'and goes');
SELECT results_eq($$SELECT notification_id COLLATE "default" FROM webhooks.categories$$, ARRAY['ntf_1'], 'alone');
SELECT * FROM finish();
