-- SPDX-License-Identifier: Apache-2.0
-- Orders that have ended, as units of the archive: a month is that in which the order ended. An order under way is in order_state, in no unit,
-- until it has ended and its transitions, which were applied events of the inbox, go with it. Ids are text and the sum is a whole number of
-- micros here, as archive files hold them. What is moved for a month that is sealed already goes to the late tables.

ALTER TABLE order_saga.order_archive RENAME TO order_archive_before;
ALTER TABLE order_saga.order_archive_before RENAME CONSTRAINT order_archive_pkey TO order_archive_before_pkey;
DROP INDEX order_saga.order_archive_order_id, order_saga.order_archive_finished;

CREATE TABLE order_saga.order_archive (
    finished_at                  timestamptz      NOT NULL,
    correlation_id               text COLLATE "C" NOT NULL,
    tenant_id                    text COLLATE "C" NOT NULL,
    order_id                     text COLLATE "C" NOT NULL,
    basket_id                    text COLLATE "C",
    current_state                text COLLATE "C" NOT NULL CHECK (current_state IN ('Completed', 'Cancelled', 'Failed')),
    total_micros                 bigint,
    currency                     text COLLATE "C" NOT NULL,
    order_placed_date            timestamptz      NOT NULL,
    version                      integer          NOT NULL,
    place_order_timeout_token_id text COLLATE "C",
    timeout_retry_count          integer          NOT NULL,
    person                       bytea            NOT NULL, -- a packed Sealed: e-mail and name
    email_hash                   bytea            NOT NULL,
    archived_at                  timestamptz      NOT NULL DEFAULT now(),
    PRIMARY KEY (finished_at, correlation_id, tenant_id)
) PARTITION BY RANGE (finished_at);
CREATE INDEX order_archive_correlation_id ON order_saga.order_archive (correlation_id);
CREATE INDEX order_archive_order_id ON order_saga.order_archive (order_id);
SELECT stentor.isolate('order_saga.order_archive');

CREATE TABLE order_saga.order_transitions (
    finished_at    timestamptz      NOT NULL, -- the order's
    correlation_id text COLLATE "C" NOT NULL,
    tenant_id      text COLLATE "C" NOT NULL,
    message_id     text COLLATE "C" NOT NULL,
    sequence       bigint           NOT NULL, -- in EVENTS
    event_type     text COLLATE "C" NOT NULL,
    from_state     text COLLATE "C",          -- null: there was no order
    to_state       text COLLATE "C",
    received       timestamptz      NOT NULL,
    consumed       timestamptz      NOT NULL,
    reason         text             NOT NULL,
    PRIMARY KEY (finished_at, correlation_id, message_id, tenant_id)
) PARTITION BY RANGE (finished_at);
SELECT stentor.isolate('order_saga.order_transitions');

CREATE TABLE order_saga.late_orders (LIKE order_saga.order_archive INCLUDING DEFAULTS INCLUDING CONSTRAINTS,
    updated_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (finished_at, correlation_id, tenant_id));
CREATE INDEX late_orders_correlation_id ON order_saga.late_orders (correlation_id);
CREATE INDEX late_orders_order_id ON order_saga.late_orders (order_id);
SELECT stentor.isolate('order_saga.late_orders');
CREATE TABLE order_saga.late_transitions (LIKE order_saga.order_transitions INCLUDING DEFAULTS INCLUDING CONSTRAINTS,
    updated_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (finished_at, correlation_id, message_id, tenant_id));
SELECT stentor.isolate('order_saga.late_transitions');

INSERT INTO archive.kinds VALUES
    ('orders', 0, 'order_saga.order_archive', 'order_saga.late_orders', 'finished_at', 'correlation_id', '{updated_at}'),
    ('orders', 1, 'order_saga.order_transitions', 'order_saga.late_transitions', 'finished_at', 'correlation_id', '{updated_at}');

GRANT SELECT ON order_saga.order_archive, order_saga.late_orders TO stentor_order_saga;
GRANT USAGE ON SCHEMA order_saga TO stentor_archiver, stentor_cli;
GRANT SELECT ON order_saga.order_archive, order_saga.order_transitions, order_saga.late_orders, order_saga.late_transitions
    TO stentor_archiver;

-- What a month's orders are looked for by while they are under way, or wait to be moved.
CREATE INDEX inbox_state_applied ON order_saga.inbox_state (correlation_id) WHERE verdict = 'applied';

CREATE FUNCTION order_saga.is_sealed(at timestamptz) RETURNS boolean
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$ SELECT EXISTS (SELECT FROM archive.units u WHERE u.kind = 'orders' AND u.state <> 'open' AND u.starts_at <= at AND u.ends_at > at) $$;

-- The months of these times that are not sealed. Its tables are locked first, so no month becomes sealed before the caller's commit.
CREATE FUNCTION order_saga.make_months(times timestamptz[]) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    month_at timestamptz;
BEGIN
    LOCK TABLE order_saga.order_archive, order_saga.order_transitions IN ROW EXCLUSIVE MODE;
    FOR month_at IN SELECT DISTINCT date_trunc('month', t, 'UTC') FROM unnest(times) AS t WHERE NOT order_saga.is_sealed(t) LOOP
        PERFORM pg_advisory_xact_lock(hashtext('order_saga.make_months'));
        PERFORM stentor.make_partitions('order_saga.order_archive', NULL, month_at, month_at),
                stentor.make_partitions('order_saga.order_transitions', NULL, month_at, month_at);
    END LOOP;
END
$$;

SELECT order_saga.make_months(array_agg(b.finished_at)) FROM order_saga.order_archive_before b;
INSERT INTO order_saga.order_archive
SELECT b.finished_at, b.correlation_id::text, b.tenant_id, b.order_id::text, b.basket_id::text, b.current_state,
       (b.total_money * 1000000)::bigint, b.currency, b.order_placed_date, b.version, b.place_order_timeout_token_id::text,
       b.timeout_retry_count, b.person, b.email_hash, b.archived_at FROM order_saga.order_archive_before b;
DROP TABLE order_saga.order_archive_before;

-- An order that ended in the month and was not moved yet holds its sealing up: a unit is whole.
CREATE FUNCTION order_saga.seal_orders(of_unit text, starts_at timestamptz, ends_at timestamptz) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '200ms'
    AS $$
BEGIN
    LOCK TABLE order_saga.order_archive, order_saga.order_transitions IN SHARE ROW EXCLUSIVE MODE;
    IF EXISTS (SELECT FROM order_saga.order_state o WHERE o.finished_at >= seal_orders.starts_at AND o.finished_at < seal_orders.ends_at) THEN
        RAISE EXCEPTION 'unit ''%'' is not sealed: orders that ended in it are still in order_state (STENTOR_SAGA_ARCHIVE_DAYS)', of_unit
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
END
$$;
GRANT EXECUTE ON FUNCTION order_saga.seal_orders(text, timestamptz, timestamptz) TO stentor_archiver;

CREATE FUNCTION archive.on_orders_moved() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF NEW.kind = 'orders' AND NEW.state = 'sealed' AND (TG_OP = 'INSERT' OR OLD.state <> NEW.state) THEN
        PERFORM order_saga.seal_orders(NEW.id, NEW.starts_at, NEW.ends_at);
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER orders_moved BEFORE INSERT OR UPDATE OF state ON archive.units FOR EACH ROW EXECUTE FUNCTION archive.on_orders_moved();
GRANT EXECUTE ON FUNCTION archive.on_orders_moved() TO stentor_archiver;

-- ---- retention ----

-- Not what was applied to an order that is still in order_state: its transitions go with it.
CREATE OR REPLACE FUNCTION order_saga.forget_inbox(older_than interval, for_tenant text, at_most integer) RETURNS bigint
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    WITH old AS MATERIALIZED (
        SELECT c.message_id, c.consumer_id, c.tenant_id FROM order_saga.inbox_state c
        WHERE coalesce(c.consumed, c.received) < now() - older_than AND (for_tenant IS NULL OR c.tenant_id = for_tenant)
          AND NOT (c.verdict = 'applied' AND EXISTS (SELECT FROM order_saga.order_state o
                                                     WHERE o.correlation_id = c.correlation_id AND o.tenant_id = c.tenant_id))
        ORDER BY coalesce(c.consumed, c.received) LIMIT at_most FOR UPDATE SKIP LOCKED),
    gone AS (
        DELETE FROM order_saga.inbox_state i USING old
        WHERE i.message_id = old.message_id AND i.consumer_id = old.consumer_id AND i.tenant_id = old.tenant_id RETURNING 1)
    SELECT count(*) FROM gone
$$;

-- Moves orders and copies their transitions. The inbox keeps its own, against repeats, for its time.
CREATE OR REPLACE FUNCTION order_saga.archive_orders(older_than interval, for_tenant text, at_most integer) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    ids uuid[];
    tenants text[];
    times timestamptz[];
    place text;
    wanted boolean;
BEGIN
    SELECT array_agg(c.correlation_id), array_agg(c.tenant_id), array_agg(c.finished_at) INTO ids, tenants, times
    FROM (SELECT o.correlation_id, o.tenant_id, o.finished_at FROM order_saga.order_state o
          WHERE o.finished_at < now() - older_than AND (for_tenant IS NULL OR o.tenant_id = for_tenant)
          ORDER BY o.finished_at LIMIT at_most FOR UPDATE SKIP LOCKED) c;
    IF ids IS NULL THEN
        RETURN 0;
    END IF;
    PERFORM order_saga.make_months(times);
    FOREACH wanted IN ARRAY ARRAY[false, true] LOOP
        place := CASE WHEN wanted THEN 'late_orders' ELSE 'order_archive' END;
        EXECUTE format(
            'INSERT INTO order_saga.%I (finished_at, correlation_id, tenant_id, order_id, basket_id, current_state, total_micros, currency,'
            ' order_placed_date, version, place_order_timeout_token_id, timeout_retry_count, person, email_hash)'
            ' SELECT o.finished_at, o.correlation_id::text, o.tenant_id, o.order_id::text, o.basket_id::text, o.current_state,'
            ' (o.total_money * 1000000)::bigint, o.currency, o.order_placed_date, o.version, o.place_order_timeout_token_id::text,'
            ' o.timeout_retry_count, o.person, o.email_hash'
            ' FROM unnest($1, $2) AS k (id, tenant) JOIN order_saga.order_state o ON o.correlation_id = k.id AND o.tenant_id = k.tenant'
            ' WHERE order_saga.is_sealed(o.finished_at) = $3 ON CONFLICT DO NOTHING', place) USING ids, tenants, wanted;
        place := CASE WHEN wanted THEN 'late_transitions' ELSE 'order_transitions' END;
        EXECUTE format(
            'INSERT INTO order_saga.%I (finished_at, correlation_id, tenant_id, message_id, sequence, event_type, from_state, to_state,'
            ' received, consumed, reason)'
            ' SELECT k.at, i.correlation_id::text, i.tenant_id, i.message_id, i.sequence, i.event_type, i.from_state, i.to_state, i.received,'
            ' i.consumed, i.reason FROM unnest($1, $2, $3) AS k (id, tenant, at) JOIN order_saga.inbox_state i ON i.correlation_id = k.id'
            ' AND i.tenant_id = k.tenant AND i.verdict = ''applied'' WHERE order_saga.is_sealed(k.at) = $4 ON CONFLICT DO NOTHING', place)
            USING ids, tenants, times, wanted;
    END LOOP;
    DELETE FROM order_saga.order_state o USING unnest(ids, tenants) AS k (id, tenant)
    WHERE o.correlation_id = k.id AND o.tenant_id = k.tenant;
    RETURN cardinality(ids);
END
$$;

-- What is not sealed; the rest is the archive's.
CREATE OR REPLACE FUNCTION order_saga.drop_archived(older_than interval, for_tenant text, at_most integer) RETURNS bigint
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    WITH old AS MATERIALIZED (
        SELECT c.finished_at, c.correlation_id, c.tenant_id FROM order_saga.order_archive c
        WHERE c.finished_at < now() - older_than AND (for_tenant IS NULL OR c.tenant_id = for_tenant)
          AND NOT order_saga.is_sealed(c.finished_at)
        ORDER BY c.finished_at LIMIT at_most FOR UPDATE SKIP LOCKED),
    moves AS (
        DELETE FROM order_saga.order_transitions t USING old
        WHERE t.finished_at = old.finished_at AND t.correlation_id = old.correlation_id AND t.tenant_id = old.tenant_id),
    gone AS (
        DELETE FROM order_saga.order_archive o USING old
        WHERE o.finished_at = old.finished_at AND o.correlation_id = old.correlation_id AND o.tenant_id = old.tenant_id RETURNING 1)
    SELECT count(*) FROM gone
$$;
