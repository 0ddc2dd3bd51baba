-- SPDX-License-Identifier: Apache-2.0
-- Tenants' webhooks: a row for each delivery (one status event to one subscription), claimed before the endpoint is called, with the
-- outcome after. And a row for each endpoint, with its failures in a row.

CREATE SCHEMA webhooks;

CREATE TABLE webhooks.deliveries (
    id                text COLLATE "C" PRIMARY KEY, -- "whd_" and 22 characters, derived from subscription and event
    tenant_id         text COLLATE "C" NOT NULL,
    subscription_id   text COLLATE "C" NOT NULL,
    event_id          text COLLATE "C" NOT NULL,    -- of the status: the webhook-id of every attempt
    event_type        text COLLATE "C" NOT NULL,    -- "notification.sent"
    notification_id   text COLLATE "C" NOT NULL,
    sequence          bigint           NOT NULL,    -- in STATUS
    previous_event_id text COLLATE "C",             -- the notification's event before it at this subscription; in order only
    payload           text             NOT NULL,    -- the JSON that is posted
    ordered           boolean          NOT NULL,    -- events of one notification go one after the other
    created_at        timestamptz      NOT NULL,    -- when the event was matched with the subscription
    state             text COLLATE "C" NOT NULL CHECK (state IN ('queued', 'claimed', 'waiting', 'delivered', 'failed')),
    turn              integer          NOT NULL CHECK (turn > 0),     -- raised whenever it comes back from DEFERRED, and by a replay
    attempt           smallint         NOT NULL CHECK (attempt >= 0), -- posts that were begun, of this replay
    owner             text COLLATE "C" NOT NULL DEFAULT '',           -- instance of the process that holds or held the claim
    lease_until       timestamptz      NOT NULL DEFAULT '-infinity',
    claimed_at        timestamptz,
    finished_at       timestamptz, -- the end of the last attempt
    next_attempt_at   timestamptz, -- waiting: when it is tried again
    status_code       smallint,    -- of the endpoint's last answer; null: there was none
    error             text,        -- of a fixed set of words: "timeout", "dns", "blocked", "status 500", "disabled" ...; null: none
    response          text,        -- the beginning of the endpoint's last answer, at most 1 KiB, printable
    duration_ms       integer
);
CREATE INDEX deliveries_listed ON webhooks.deliveries (tenant_id, subscription_id, created_at, id);
CREATE INDEX deliveries_created ON webhooks.deliveries (created_at);
CREATE INDEX deliveries_in_order ON webhooks.deliveries (subscription_id, notification_id, sequence) WHERE ordered;
SELECT stentor.isolate('webhooks.deliveries');

CREATE TABLE webhooks.endpoints (
    tenant_id       text COLLATE "C" NOT NULL,
    subscription_id text COLLATE "C" NOT NULL,
    failures        integer          NOT NULL CHECK (failures >= 0), -- in a row: a success sets them to 0
    delivered_at    timestamptz, -- the last success
    failed_at       timestamptz, -- the last failure
    error           text,        -- the last failure's
    status_code     smallint,
    updated_at      timestamptz      NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, subscription_id)
) WITH (fillfactor = 50);
SELECT stentor.isolate('webhooks.endpoints');

-- The limits of endpoints that all webhook dispatchers keep together: as dispatcher.budget (migrations/dispatcher/0005_budget.sql).
CREATE TABLE webhooks.budget (
    key           text COLLATE "C" PRIMARY KEY CHECK (length(key) BETWEEN 1 AND 200),
    tat           timestamptz NOT NULL,
    penalty       real        NOT NULL DEFAULT 1 CHECK (penalty > 0 AND penalty <= 1),
    penalty_until timestamptz
) WITH (fillfactor = 50);
CREATE FUNCTION webhooks.budget_pace(penalty real, penalty_until timestamptz) RETURNS double precision
    LANGUAGE sql STABLE
    AS $$ SELECT least(1, penalty + 0.05 * floor(extract(epoch FROM greatest(now() - coalesce(penalty_until, now()), interval '0')) / 10))::double precision $$;

-- Looks at at_most rows, the oldest first; -1: another process is at it. What is on its way stays: it ends within two days.
CREATE FUNCTION webhooks.drop_deliveries(for_tenant text, keep text, after text, at_most integer)
    RETURNS TABLE (dropped bigint, go_on text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
    AS $$
DECLARE
    cutoff timestamptz := now() - keep::interval;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext('webhooks.deliveries')) THEN
        RETURN QUERY SELECT -1::bigint, after;
        RETURN;
    END IF;
    DELETE FROM webhooks.deliveries d USING (
        SELECT e.id FROM webhooks.deliveries e
        WHERE e.created_at < cutoff AND coalesce(e.finished_at, e.created_at) < cutoff
          AND (for_tenant IS NULL OR e.tenant_id = for_tenant)
        ORDER BY e.created_at LIMIT at_most) o
    WHERE d.id = o.id;
    GET DIAGNOSTICS dropped = ROW_COUNT;
    go_on := CASE WHEN dropped = at_most THEN 'more' END;
    RETURN NEXT;
END
$$;

-- Endpoints of which nothing was heard for so long.
CREATE FUNCTION webhooks.drop_endpoints(for_tenant text, keep text, after text, at_most integer)
    RETURNS TABLE (dropped bigint, go_on text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off
    AS $$
BEGIN
    DELETE FROM webhooks.endpoints d USING (
        SELECT e.tenant_id, e.subscription_id FROM webhooks.endpoints e
        WHERE e.updated_at < now() - keep::interval AND (for_tenant IS NULL OR e.tenant_id = for_tenant)
        ORDER BY e.tenant_id, e.subscription_id LIMIT at_most FOR UPDATE SKIP LOCKED) o
    WHERE d.tenant_id = o.tenant_id AND d.subscription_id = o.subscription_id;
    GET DIAGNOSTICS dropped = ROW_COUNT;
    go_on := CASE WHEN dropped = at_most THEN 'more' END;
    RETURN NEXT;
END
$$;

GRANT USAGE ON SCHEMA stentor, keys, webhooks TO stentor_webhook;
-- It opens signing secrets, which are sealed under tenants' own keys: it reads no data key and no epoch key.
GRANT EXECUTE ON FUNCTION stentor.tenants(), stentor.migration_heads(), keys.gate_closed() TO stentor_webhook;
GRANT SELECT ON keys.master_keys TO stentor_webhook;
GRANT SELECT, INSERT, UPDATE ON webhooks.deliveries, webhooks.endpoints TO stentor_webhook;
GRANT SELECT, INSERT, UPDATE, DELETE ON webhooks.budget TO stentor_webhook;
GRANT EXECUTE ON FUNCTION webhooks.budget_pace(real, timestamptz), webhooks.drop_deliveries(text, text, text, integer),
    webhooks.drop_endpoints(text, text, text, integer) TO stentor_webhook;
GRANT USAGE ON SCHEMA webhooks TO stentor_gateway, stentor_cli;
GRANT SELECT ON webhooks.deliveries, webhooks.endpoints TO stentor_gateway, stentor_cli;
