-- SPDX-License-Identifier: Apache-2.0
-- The send ledger: a row is claimed before the vendor is called and gets its outcome after. A claim whose process died
-- in between is an unknown outcome: it is counted in unknown_count when somebody takes it over, and stays countable.

CREATE SCHEMA IF NOT EXISTS dispatcher;

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
    reply             text,             -- the vendor's words, masked
    due_at            timestamptz,      -- deferred: when it is tried again
    rung              smallint,         -- deferred: retries of the ladder used, the next one included
    PRIMARY KEY (created_at, notification_id, attempt)
) PARTITION BY RANGE (created_at);
SELECT stentor.isolate('dispatcher.ledger');
SELECT stentor.ensure_partitions('dispatcher.ledger', now() - interval '1 month', now() + interval '12 months');

GRANT USAGE ON SCHEMA dispatcher TO stentor_dispatcher, stentor_cli;
GRANT SELECT, INSERT, UPDATE ON dispatcher.ledger TO stentor_dispatcher;
GRANT SELECT ON dispatcher.ledger TO stentor_cli;
