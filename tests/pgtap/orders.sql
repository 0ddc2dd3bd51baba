-- SPDX-License-Identifier: Apache-2.0
-- The order saga's table: the states of document D, and nothing between them.
SELECT no_plan();

SELECT has_column('order_saga', 'order_state', name, name || ' of document D') FROM unnest(ARRAY['correlation_id', 'order_id', 'basket_id', 'current_state', 'total_money',
    'currency', 'order_placed_date', 'version', 'place_order_timeout_token_id', 'timeout_retry_count']) AS name;
SELECT col_is_pk('order_saga', 'order_state', ARRAY['correlation_id', 'tenant_id']::name[], 'order_state has its key');
SELECT col_type_is('order_saga', 'order_state', 'total_money', 'numeric(18,2)', 'money is exact');
PREPARE place(text, timestamptz, integer) AS INSERT INTO order_saga.order_state (correlation_id, tenant_id, order_id, current_state, currency,
    order_placed_date, version, finished_at, person, email_hash)
    VALUES (gen_random_uuid(), 'acme', gen_random_uuid(), $1, 'EUR', now(), $3, $2, '\x00', decode(repeat('00', 32), 'hex'));
SELECT lives_ok($$EXECUTE place('Placed', NULL, 1)$$, 'an order is placed');
SELECT lives_ok(format('EXECUTE place(%L, now(), 2)', state), state || ' ends it') FROM unnest(ARRAY['Completed', 'Cancelled', 'Failed']) AS state;
SELECT throws_ok($$EXECUTE place('Completed', NULL, 2)$$, '23514', NULL, 'an end has its time');
SELECT throws_ok($$EXECUTE place('Placed', now(), 1)$$, '23514', NULL, 'an order under way has none');
SELECT throws_ok($$EXECUTE place('New', NULL, 1)$$, '23514', NULL, 'no other state');
SELECT throws_ok($$EXECUTE place('Placed', NULL, 0)$$, '23514', NULL, 'versions begin at 1');
SELECT * FROM finish();
