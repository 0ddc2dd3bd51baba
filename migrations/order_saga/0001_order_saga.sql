-- SPDX-License-Identifier: Apache-2.0
-- The order saga (system D): one row per order, what was consumed, what has to go out, what is over for long.
-- Who ordered is sealed under the key of their address, so erasing the person is destroying that key; hashes and sums stay.

CREATE SCHEMA IF NOT EXISTS order_saga;

CREATE TABLE order_saga.order_state (
    correlation_id               uuid             NOT NULL,
    tenant_id                    text COLLATE "C" NOT NULL,
    order_id                     uuid             NOT NULL,
    basket_id                    uuid,
    current_state                text COLLATE "C" NOT NULL CHECK (current_state IN ('Placed', 'Completed', 'Cancelled', 'Failed')),
    total_money                  numeric(18, 2),
    currency                     text COLLATE "C" NOT NULL CHECK (length(currency) = 3),
    order_placed_date            timestamptz      NOT NULL,
    version                      integer          NOT NULL CHECK (version > 0), -- who has read another one writes nothing
    place_order_timeout_token_id uuid,                                          -- of the wait under way
    wait_due                     timestamptz,                                   -- when it ends; asked of the clock again: since when
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
    reason         text             NOT NULL, -- for a person; empty: nothing to say
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

-- ---- doors: what looks across tenants ----

CREATE FUNCTION order_saga.claim_outbox(older_than interval, lease interval, at_most integer)
    RETURNS TABLE (sequence_number bigint, tenant_id text, message_id text, message_type text, correlation_id uuid,
                   destination_address text, body bytea, happened_at timestamptz, seen_at timestamptz, traceparent text,
                   enqueue_time timestamptz)
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    -- MATERIALIZED: a join could run the choice once per row and claim more than at_most.
    WITH due AS MATERIALIZED (
        SELECT c.sequence_number FROM order_saga.outbox_message c
        WHERE c.sent_time IS NULL AND c.enqueue_time < now() - older_than
          AND (c.claimed_until IS NULL OR c.claimed_until < now())
        ORDER BY c.sequence_number LIMIT at_most FOR UPDATE SKIP LOCKED),
    claimed AS (
        UPDATE order_saga.outbox_message m SET claimed_until = now() + lease
        FROM due WHERE m.sequence_number = due.sequence_number
        RETURNING m.*)
    SELECT c.sequence_number, c.tenant_id, c.message_id, c.message_type, c.correlation_id, c.destination_address, c.body,
           c.happened_at, c.seen_at, c.traceparent, c.enqueue_time FROM claimed c ORDER BY c.sequence_number
$$;

-- Waits that are over for `grace` and have not come back; each one again after another `grace`.
CREATE FUNCTION order_saga.claim_overdue(grace interval, at_most integer)
    RETURNS TABLE (tenant_id text, correlation_id uuid, token uuid, retries integer)
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    WITH due AS MATERIALIZED (
        SELECT c.correlation_id, c.tenant_id FROM order_saga.order_state c
        WHERE c.current_state = 'Placed' AND c.wait_due < now() - grace
        ORDER BY c.wait_due LIMIT at_most FOR UPDATE SKIP LOCKED)
    UPDATE order_saga.order_state o SET wait_due = now()
    FROM due WHERE o.correlation_id = due.correlation_id AND o.tenant_id = due.tenant_id
    RETURNING o.tenant_id, o.correlation_id, o.place_order_timeout_token_id, o.timeout_retry_count
$$;

-- For the metrics: orders that are under way, those of them that have been for too long, events without an order, what is
-- not sent and since when.
CREATE FUNCTION order_saga.kpis(stalled_after interval, OUT active bigint, OUT stalled bigint, OUT unmatched bigint, OUT backlog bigint,
                          OUT oldest_unsent timestamptz)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT o.active, o.stalled, (SELECT count(*) FROM order_saga.inbox_state i WHERE i.verdict = 'unmatched'), m.backlog, m.oldest
    FROM (SELECT count(*) AS active, count(*) FILTER (WHERE s.order_placed_date < now() - stalled_after) AS stalled
          FROM order_saga.order_state s WHERE s.current_state = 'Placed') o,
         (SELECT count(*) AS backlog, min(b.enqueue_time) AS oldest FROM order_saga.outbox_message b WHERE b.sent_time IS NULL) m
$$;

-- Retention, at_most rows a call; for_tenant null: of all.
CREATE FUNCTION order_saga.forget_outbox(older_than interval, for_tenant text, at_most integer) RETURNS bigint
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    WITH old AS MATERIALIZED (
        SELECT c.sequence_number FROM order_saga.outbox_message c
        WHERE c.sent_time < now() - older_than AND (for_tenant IS NULL OR c.tenant_id = for_tenant)
        ORDER BY c.sent_time LIMIT at_most FOR UPDATE SKIP LOCKED),
    gone AS (DELETE FROM order_saga.outbox_message m USING old WHERE m.sequence_number = old.sequence_number RETURNING 1)
    SELECT count(*) FROM gone
$$;

-- Unmatched events too: an order that has not come by then does not come.
CREATE FUNCTION order_saga.forget_inbox(older_than interval, for_tenant text, at_most integer) RETURNS bigint
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    WITH old AS MATERIALIZED (
        SELECT c.message_id, c.consumer_id, c.tenant_id FROM order_saga.inbox_state c
        WHERE coalesce(c.consumed, c.received) < now() - older_than AND (for_tenant IS NULL OR c.tenant_id = for_tenant)
        ORDER BY coalesce(c.consumed, c.received) LIMIT at_most FOR UPDATE SKIP LOCKED),
    gone AS (
        DELETE FROM order_saga.inbox_state i USING old
        WHERE i.message_id = old.message_id AND i.consumer_id = old.consumer_id AND i.tenant_id = old.tenant_id RETURNING 1)
    SELECT count(*) FROM gone
$$;

CREATE FUNCTION order_saga.archive_orders(older_than interval, for_tenant text, at_most integer) RETURNS bigint
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    WITH old AS MATERIALIZED (
        SELECT c.correlation_id, c.tenant_id FROM order_saga.order_state c
        WHERE c.finished_at < now() - older_than AND (for_tenant IS NULL OR c.tenant_id = for_tenant)
        ORDER BY c.finished_at LIMIT at_most FOR UPDATE SKIP LOCKED),
    gone AS (
        DELETE FROM order_saga.order_state o USING old
        WHERE o.correlation_id = old.correlation_id AND o.tenant_id = old.tenant_id RETURNING o.*),
    kept AS (INSERT INTO order_saga.order_archive SELECT g.*, now() FROM gone g ON CONFLICT DO NOTHING)
    SELECT count(*) FROM gone
$$;

CREATE FUNCTION order_saga.drop_archived(older_than interval, for_tenant text, at_most integer) RETURNS bigint
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    WITH old AS MATERIALIZED (
        SELECT c.correlation_id, c.tenant_id FROM order_saga.order_archive c
        WHERE c.finished_at < now() - older_than AND (for_tenant IS NULL OR c.tenant_id = for_tenant)
        ORDER BY c.finished_at LIMIT at_most FOR UPDATE SKIP LOCKED),
    gone AS (
        DELETE FROM order_saga.order_archive o USING old
        WHERE o.correlation_id = old.correlation_id AND o.tenant_id = old.tenant_id RETURNING 1)
    SELECT count(*) FROM gone
$$;

REVOKE ALL ON FUNCTION order_saga.claim_outbox(interval, interval, integer), order_saga.claim_overdue(interval, integer), order_saga.kpis(interval),
    order_saga.forget_outbox(interval, text, integer), order_saga.forget_inbox(interval, text, integer), order_saga.archive_orders(interval, text, integer),
    order_saga.drop_archived(interval, text, integer) FROM PUBLIC;
GRANT USAGE ON SCHEMA order_saga TO stentor_order_saga;
GRANT SELECT, INSERT, UPDATE ON order_saga.order_state, order_saga.inbox_state, order_saga.outbox_message TO stentor_order_saga;
GRANT SELECT ON order_saga.order_archive TO stentor_order_saga;
GRANT EXECUTE ON FUNCTION order_saga.claim_outbox(interval, interval, integer), order_saga.claim_overdue(interval, integer), order_saga.kpis(interval),
    order_saga.forget_outbox(interval, text, integer), order_saga.forget_inbox(interval, text, integer), order_saga.archive_orders(interval, text, integer),
    order_saga.drop_archived(interval, text, integer) TO stentor_order_saga;

-- Every statement is a look-up by key: a plan made while a table was small would scan it for as long as the plan is kept.
ALTER ROLE stentor_order_saga SET enable_seqscan = off;
