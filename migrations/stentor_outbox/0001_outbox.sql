-- SPDX-License-Identifier: Apache-2.0
-- What Stentor remembers of an application's outbox tables, next to them in the application's own database
-- (stentor outbox install). One relay writes for one mapping; the mapping's name is in every row.

CREATE SCHEMA stentor_outbox;

-- Part of every message id that is made here: rows of two databases may have the same ids (numbers that begin at 1).
CREATE TABLE stentor_outbox.source (
    id  uuid    NOT NULL DEFAULT gen_random_uuid(),
    one boolean PRIMARY KEY DEFAULT true CHECK (one)
);
INSERT INTO stentor_outbox.source DEFAULT VALUES;

-- One row per batch that a relay has taken and not yet finished. No other relay takes its rows and ordering keys as long
-- as the row is there; past claimed_until another relay adopts it whole.
CREATE TABLE stentor_outbox.claims (
    claim_id      text COLLATE "C" PRIMARY KEY,
    mapping       text COLLATE "C" NOT NULL,
    relay         text             NOT NULL,
    claimed_at    timestamptz      NOT NULL,
    claimed_until timestamptz      NOT NULL,
    row_keys      text[]           NOT NULL,
    attempts      integer[]        NOT NULL, -- which request of the row; parallel to row_keys
    ordering_keys text[]           NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
CREATE INDEX claims_mapping ON stentor_outbox.claims (mapping, claimed_until);
-- Written once, read a few times, gone within a second: not worth compressing.
ALTER TABLE stentor_outbox.claims ALTER COLUMN row_keys SET STORAGE EXTERNAL;

-- Requests whose outcome is written back. A row of the application that is asked for again is another attempt: another request.
CREATE TABLE stentor_outbox.requests (
    mapping         text COLLATE "C" NOT NULL,
    row_key         text COLLATE "C" NOT NULL,
    attempt         integer          NOT NULL CHECK (attempt > 0),
    notification_id text COLLATE "C" NOT NULL UNIQUE,
    state           text COLLATE "C" NOT NULL CHECK (state IN ('noted', 'published', 'retrying', 'sent', 'failed', 'again')),
    rank            integer          NOT NULL DEFAULT 0, -- of the status that made the state; only a higher one changes it
    attempts        integer          NOT NULL DEFAULT 0, -- of the delivery, that have failed
    reason          text,
    made_at         timestamptz      NOT NULL, -- stands in the notification's id
    ended_at        timestamptz,               -- sent, failed
    PRIMARY KEY (mapping, row_key, attempt)
) WITH (fillfactor = 70);
-- No index over what changes (state, ended_at): a row is updated three times, each time in its place.
CREATE INDEX requests_made ON stentor_outbox.requests (mapping, made_at);

-- Requests whose outcome is known and whose row could not be written at that moment: the application held its lock, or its
-- table rejected the change.
CREATE TABLE stentor_outbox.pending_feedback (
    mapping text COLLATE "C" NOT NULL,
    row_key text COLLATE "C" NOT NULL,
    attempt integer          NOT NULL, -- of the request
    at      timestamptz      NOT NULL, -- when it happened
    tries   integer          NOT NULL DEFAULT 0, -- that its table has rejected
    next_at timestamptz      NOT NULL DEFAULT now(),
    PRIMARY KEY (mapping, row_key, attempt)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- Rows that do not fit their mapping, of tables in which they stay pending all the same.
CREATE TABLE stentor_outbox.rejected_rows (
    mapping     text COLLATE "C" NOT NULL,
    row_key     text COLLATE "C" NOT NULL,
    reason      text             NOT NULL,
    rejected_at timestamptz      NOT NULL,
    again       boolean          NOT NULL DEFAULT false, -- asked for once more; the row of this table stays until it is published
    PRIMARY KEY (mapping, row_key)
);

-- Mappings with states whose first relay has looked up what the application had published by itself.
CREATE TABLE stentor_outbox.initialised_mappings (
    mapping        text COLLATE "C" PRIMARY KEY,
    initialised_at timestamptz      NOT NULL
);

-- Rows that are published and that have no column to say so (MassTransit's).
CREATE TABLE stentor_outbox.published (
    mapping      text COLLATE "C" NOT NULL,
    row_key      text COLLATE "C" NOT NULL,
    published_at timestamptz      NOT NULL,
    PRIMARY KEY (mapping, row_key)
);

-- How far the status events were read, in the same transaction as what they changed.
CREATE TABLE stentor_outbox.positions (
    projection        text        NOT NULL,
    stream            text        NOT NULL,
    sequence          bigint      NOT NULL,
    stream_created_at timestamptz NOT NULL,
    stored_at         timestamptz,
    PRIMARY KEY (projection, stream)
);

-- stentor outbox install --wake: one NOTIFY per statement that inserts, with the mapping's name.
CREATE FUNCTION stentor_outbox.wake() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    PERFORM pg_notify('stentor_outbox', TG_ARGV[0]);
    RETURN NULL;
END
$$;
