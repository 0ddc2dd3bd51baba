-- SPDX-License-Identifier: Apache-2.0
-- Unknown outcomes are settled by what a vendor's callback proves, and can be counted while they are open.

-- Set once, by the first callback that proves that a mail without a known outcome had left us. On a claim whose lease
-- lives it is only noted: whatever ends the claim (its owner's outcome, a take-over, parking) then makes it 'sent'.
ALTER TABLE dispatcher.ledger
    ADD COLUMN settled_at timestamptz,
    ADD COLUMN settled_by text COLLATE "C", -- event id of the status that the callback became
    ADD CONSTRAINT ledger_settled CHECK ((settled_at IS NULL) = (settled_by IS NULL));

-- What has no outcome. Each mail passes through it once, which costs 3 us of Postgres a mail (dispatcher's README).
CREATE INDEX ledger_open ON dispatcher.ledger (lease_until) WHERE state IN ('claimed', 'parked');

-- Every statement of the dispatcher is a look-up by key. A partition that was analysed while it was small would be scanned
-- by plans that are kept while it grows.
ALTER ROLE stentor_dispatcher SET enable_seqscan = off;

-- How many unknown outcomes are open over all tenants. Never by a scan of the table: it is read every few seconds.
CREATE FUNCTION dispatcher.unknown_open(OUT claimed bigint, OUT parked bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
    AS $$
    SELECT count(*) FILTER (WHERE l.state = 'claimed' AND l.owner <> '' AND l.lease_until <= now() AND l.settled_at IS NULL),
           count(*) FILTER (WHERE l.state = 'parked')
    FROM dispatcher.ledger l WHERE l.state IN ('claimed', 'parked')
$$;
REVOKE ALL ON FUNCTION dispatcher.unknown_open() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION dispatcher.unknown_open() TO stentor_dispatcher, stentor_cli;
