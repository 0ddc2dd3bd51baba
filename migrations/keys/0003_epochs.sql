-- SPDX-License-Identifier: Apache-2.0
-- Epoch keys: which there are, and which one wraps. The keys themselves are never here, nor in a backup of this database: they lie in
-- STENTOR_EPOCH_KEYS_DIR. A destroyed one makes every data key that it has wrapped unreadable, in whatever backup it lies.

CREATE TABLE keys.epochs (
    number       integer     PRIMARY KEY CHECK (number > 0),
    key_id       bytea       NOT NULL UNIQUE CHECK (length(key_id) = 4),
    opened_at    timestamptz NOT NULL DEFAULT now(),
    closed_at    timestamptz,  -- another one wraps from then on; no data key is made under it any more
    emptied_at   timestamptz,  -- it wraps no data key of this database any more
    destroyed_at timestamptz,
    CHECK (emptied_at IS NULL OR closed_at IS NOT NULL),
    CHECK (destroyed_at IS NULL OR emptied_at IS NOT NULL)
);
CREATE UNIQUE INDEX epochs_open ON keys.epochs ((true)) WHERE closed_at IS NULL;

GRANT SELECT ON keys.epochs TO stentor_ingest, stentor_gateway, stentor_renderer, stentor_dispatcher, stentor_digest_flusher,
    stentor_order_saga, stentor_cli;

-- The head of a key that is wrapped now: form 1; kind 2 and the open epoch's id, or kind 1 and the current master key's where there are no
-- epochs. Null: none is registered.
CREATE OR REPLACE FUNCTION keys.current_wrapper() RETURNS bytea
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$ SELECT coalesce((SELECT '\x0102'::bytea || key_id FROM keys.epochs WHERE closed_at IS NULL),
                          (SELECT '\x0101'::bytea || key_id FROM keys.master_keys WHERE kind = 'master' AND retired_at IS NULL
                           ORDER BY current_at DESC, key_id LIMIT 1)) $$;

-- May a data key be made under this head? An epoch key that is not registered yet is a new one, whose file this caller has; none is made
-- under a closed one, nor under a master key that is retired, nor under any master key once there are epochs.
CREATE FUNCTION keys.may_wrap(head bytea) RETURNS boolean
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$ SELECT CASE substr(head, 1, 2)
          WHEN '\x0102' THEN NOT EXISTS (SELECT FROM keys.epochs WHERE key_id = substr(head, 3, 4) AND closed_at IS NOT NULL)
          WHEN '\x0101' THEN NOT EXISTS (SELECT FROM keys.epochs WHERE closed_at IS NULL)
                         AND NOT EXISTS (SELECT FROM keys.master_keys WHERE kind = 'master' AND key_id = substr(head, 3, 4)
                                         AND retired_at IS NOT NULL)
          ELSE false END $$;
GRANT EXECUTE ON FUNCTION keys.may_wrap(bytea) TO stentor_ingest, stentor_gateway, stentor_order_saga;
