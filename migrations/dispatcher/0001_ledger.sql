-- SPDX-License-Identifier: Apache-2.0
-- The send ledger: a row is claimed before the vendor is called and gets its outcome after. A claim whose process died
-- in between is an unknown outcome: it is counted in unknown_count when another process takes it over, and stays countable.

CREATE SCHEMA dispatcher;

CREATE TABLE dispatcher.ledger (
    created_at        timestamptz      NOT NULL, -- the notification's: the time in its ULID
    notification_id   text COLLATE "C" NOT NULL,
    attempt           smallint         NOT NULL CHECK (attempt > 0),
    tenant_id         text COLLATE "C" NOT NULL,
    state             text COLLATE "C" NOT NULL CHECK (state IN ('claimed', 'sent', 'deferred', 'failed', 'parked')),
    owner             text COLLATE "C" NOT NULL, -- instance of the process that holds or held the claim
    lease_until       timestamptz      NOT NULL,
    unknown_count     smallint         NOT NULL DEFAULT 0, -- earlier claims of this attempt without an outcome
    claimed_at        timestamptz      NOT NULL,
    finished_at       timestamptz,
    vendor            text,
    vendor_message_id text,
    code              text,
    enhanced_code     text,
    reply             text,             -- the vendor's text, masked
    due_at            timestamptz,      -- deferred: when it is tried again
    rung              smallint,         -- deferred: retries of the ladder used, the next one included
    -- Set once, by the first callback that proves that a mail without a known outcome was sent. On a claim whose lease has not ended
    -- it is only noted: whatever ends the claim (its owner's outcome, a take-over, parking) then makes it 'sent'.
    settled_at        timestamptz,
    settled_by        text COLLATE "C", -- event id of the status that the callback became
    PRIMARY KEY (created_at, notification_id, attempt),
    CONSTRAINT ledger_settled CHECK ((settled_at IS NULL) = (settled_by IS NULL))
) PARTITION BY RANGE (created_at);
-- What has no outcome. Each mail passes through it once, which costs Postgres 3 us a mail.
CREATE INDEX ledger_open ON dispatcher.ledger (lease_until) WHERE state IN ('claimed', 'parked');
SELECT stentor.isolate('dispatcher.ledger');
SELECT stentor.ensure_partitions('dispatcher.ledger', now() - interval '1 month', now() + interval '12 months');

-- How many unknown outcomes are open over all tenants. Never by a scan of the table: it is read every few seconds.
CREATE FUNCTION dispatcher.unknown_open(OUT claimed bigint, OUT parked bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
    AS $$
    SELECT count(*) FILTER (WHERE l.state = 'claimed' AND l.owner <> '' AND l.lease_until <= now() AND l.settled_at IS NULL),
           count(*) FILTER (WHERE l.state = 'parked')
    FROM dispatcher.ledger l WHERE l.state IN ('claimed', 'parked')
$$;

GRANT USAGE ON SCHEMA dispatcher TO stentor_dispatcher, stentor_cli;
GRANT SELECT, INSERT, UPDATE ON dispatcher.ledger TO stentor_dispatcher;
GRANT SELECT ON dispatcher.ledger TO stentor_cli;
GRANT EXECUTE ON FUNCTION dispatcher.unknown_open() TO stentor_dispatcher, stentor_cli;
