-- SPDX-License-Identifier: Apache-2.0
-- The order saga: one row per order, what was consumed, what has to go out, what ended long ago.
-- Who ordered is sealed under the key of their address, so erasing them is destroying that key; hashes and sums stay.

CREATE SCHEMA order_saga;

CREATE TABLE order_saga.order_state (
    correlation_id               uuid             NOT NULL,
    tenant_id                    text COLLATE "C" NOT NULL,
    order_id                     uuid             NOT NULL,
    basket_id                    uuid,
    current_state                text COLLATE "C" NOT NULL CHECK (current_state IN ('Placed', 'Completed', 'Cancelled', 'Failed')),
    total_money                  numeric(18, 2),
    currency                     text COLLATE "C" NOT NULL CHECK (length(currency) = 3),
    order_placed_date            timestamptz      NOT NULL,
    version                      integer          NOT NULL CHECK (version > 0), -- a writer that has read another one writes nothing
    place_order_timeout_token_id uuid,                                          -- of the wait under way
    wait_due                     timestamptz,                                   -- when it ends; asked of digest-flusher again: since when
    timeout_retry_count          integer          NOT NULL DEFAULT 0,
    finished_at                  timestamptz CHECK ((finished_at IS NULL) = (current_state = 'Placed')),
    person                       bytea            NOT NULL, -- a packed Sealed: e-mail and name
    email_hash                   bytea            NOT NULL CHECK (length(email_hash) = 32),
    PRIMARY KEY (correlation_id, tenant_id)
);
CREATE INDEX order_state_order_id ON order_saga.order_state (order_id);
CREATE INDEX order_state_placed ON order_saga.order_state (order_placed_date) WHERE current_state = 'Placed';
CREATE INDEX order_state_wait_due ON order_saga.order_state (wait_due) WHERE current_state = 'Placed';
CREATE INDEX order_state_finished ON order_saga.order_state (finished_at) WHERE finished_at IS NOT NULL;
SELECT stentor.isolate('order_saga.order_state');

-- Orders that ended long ago. The same columns; nothing here changes again.
CREATE TABLE order_saga.order_archive (
    LIKE order_saga.order_state INCLUDING CONSTRAINTS,
    archived_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (correlation_id, tenant_id)
);
CREATE INDEX order_archive_order_id ON order_saga.order_archive (order_id);
CREATE INDEX order_archive_finished ON order_saga.order_archive (finished_at);
SELECT stentor.isolate('order_saga.order_archive');

CREATE TABLE order_saga.inbox_state (
    message_id     text COLLATE "C" NOT NULL, -- Nats-Msg-Id, or the CloudEvent's id, or stream and sequence
    consumer_id    text COLLATE "C" NOT NULL,
    tenant_id      text COLLATE "C" NOT NULL,
    correlation_id uuid             NOT NULL,
    event_type     text COLLATE "C" NOT NULL,
    sequence       bigint           NOT NULL, -- in EVENTS: the order in which unmatched events are applied
    received       timestamptz      NOT NULL,
    receive_count  integer          NOT NULL,
    consumed       timestamptz,               -- null: unmatched
    verdict        text COLLATE "C" NOT NULL CHECK (verdict IN ('applied', 'conflict', 'stale', 'unmatched', 'duplicate')),
    reason         text             NOT NULL, -- for an operator; empty: none
    from_state     text COLLATE "C",          -- null: there was no order
    to_state       text COLLATE "C",
    event          bytea,                     -- of an unmatched one: a packed StatusChanged, until its order is there
    PRIMARY KEY (message_id, consumer_id, tenant_id),
    CHECK ((consumed IS NULL) = (verdict = 'unmatched'))
);
CREATE INDEX inbox_state_unmatched ON order_saga.inbox_state (correlation_id) WHERE verdict = 'unmatched';
CREATE INDEX inbox_state_age ON order_saga.inbox_state ((coalesce(consumed, received)));
SELECT stentor.isolate('order_saga.inbox_state');

-- Commands and time-outs, written with the state that they follow from.
CREATE TABLE order_saga.outbox_message (
    sequence_number     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id           text COLLATE "C" NOT NULL,
    message_id          text COLLATE "C" NOT NULL, -- a repeated PlaceOrder has the id of the first
    message_type        text COLLATE "C" NOT NULL, -- 'PlaceOrder' ..., or 'Deferred'
    correlation_id      uuid             NOT NULL,
    destination_address text COLLATE "C" NOT NULL, -- the subject
    body                bytea            NOT NULL, -- a packed Sealed that holds the command; a Deferred as it is
    happened_at         timestamptz      NOT NULL,
    seen_at             timestamptz,                   -- when EVENTS stored what it follows from; null: no command
    traceparent         text COLLATE "C" NOT NULL,
    enqueue_time        timestamptz      NOT NULL DEFAULT now(),
    sent_time           timestamptz,
    withheld            text,                      -- why it was not sent, and never will be
    claimed_until       timestamptz                -- a sweep publishes it until then
);
CREATE INDEX outbox_message_unsent ON order_saga.outbox_message (sequence_number) WHERE sent_time IS NULL;
CREATE INDEX outbox_message_sent ON order_saga.outbox_message (sent_time) WHERE sent_time IS NOT NULL;
SELECT stentor.isolate('order_saga.outbox_message');

GRANT USAGE ON SCHEMA order_saga TO stentor_order_saga;
GRANT SELECT, INSERT, UPDATE ON order_saga.order_state, order_saga.inbox_state, order_saga.outbox_message TO stentor_order_saga;
GRANT SELECT ON order_saga.order_archive TO stentor_order_saga;
