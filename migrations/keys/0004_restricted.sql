-- SPDX-License-Identifier: Apache-2.0
-- Data keys that exist and that no program uses: an erasure was asked for and a hold keeps the data (migrations/erasure). The keyring takes
-- such a key for destroyed, and makes no other one for that recipient.

ALTER TABLE keys.data_keys ADD COLUMN restricted_by text COLLATE "C"; -- the erasure's id

-- A destroyed key leaves its wrapped form in a dead row: autovacuum takes it away in its next round, not once a fifth of the table has changed.
ALTER TABLE keys.data_keys SET (autovacuum_vacuum_threshold = 0, autovacuum_vacuum_scale_factor = 0);

-- Closed: this database was restored and lacks erasures that were done since. No service that holds keys works before they are done again.
CREATE TABLE keys.gate (
    single    boolean     PRIMARY KEY DEFAULT true CHECK (single),
    closed_at timestamptz NOT NULL DEFAULT now(),
    reason    text        NOT NULL
);

-- Null: open.
CREATE FUNCTION keys.gate_closed() RETURNS text
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT g.reason FROM keys.gate g $$;

-- why null: open it.
CREATE FUNCTION keys.set_gate(why text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    DELETE FROM keys.gate;
    IF why IS NOT NULL THEN
        INSERT INTO keys.gate (reason) VALUES (why);
    END IF;
END
$$;

GRANT EXECUTE ON FUNCTION keys.gate_closed() TO stentor_ingest, stentor_gateway, stentor_renderer, stentor_dispatcher, stentor_digest_flusher,
    stentor_order_saga, stentor_cli;
GRANT EXECUTE ON FUNCTION keys.set_gate(text) TO stentor_cli;
