-- SPDX-License-Identifier: Apache-2.0
-- What `stentor order` shows: states and transitions, without who ordered and without events that wait. And of an outbox row the message that
-- it follows from.

ALTER TABLE order_saga.outbox_message ADD COLUMN initiator_id text COLLATE "C"; -- message_id of its inbox row; null: written before this column

-- An operator looks for the few that went wrong.
CREATE INDEX order_state_failed ON order_saga.order_state (finished_at) WHERE current_state = 'Failed';
CREATE INDEX inbox_state_conflict ON order_saga.inbox_state (correlation_id) WHERE verdict = 'conflict';

GRANT SELECT (correlation_id, tenant_id, order_id, basket_id, current_state, total_money, currency, order_placed_date, version,
    place_order_timeout_token_id, wait_due, timeout_retry_count, finished_at) ON order_saga.order_state TO stentor_cli;
GRANT SELECT (message_id, tenant_id, correlation_id, event_type, sequence, received, receive_count, consumed, verdict, reason, from_state, to_state)
    ON order_saga.inbox_state TO stentor_cli;
GRANT SELECT (finished_at, correlation_id, tenant_id, order_id, basket_id, current_state, total_micros, currency, order_placed_date, version,
    timeout_retry_count, archived_at) ON order_saga.order_archive, order_saga.late_orders TO stentor_cli;
GRANT SELECT ON order_saga.order_transitions, order_saga.late_transitions TO stentor_cli;
