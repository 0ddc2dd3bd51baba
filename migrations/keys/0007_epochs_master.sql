-- SPDX-License-Identifier: Apache-2.0
-- By which master key the files of the epoch keys are wrapped: an older one is not retired before they are wrapped again.

ALTER TABLE keys.work ADD COLUMN epochs_master bytea CHECK (length(epochs_master) = 4);

CREATE FUNCTION keys.note_epochs_master(id bytea) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ UPDATE keys.work SET epochs_master = id WHERE epochs_master IS DISTINCT FROM id $$;
GRANT EXECUTE ON FUNCTION keys.note_epochs_master(bytea) TO stentor_ingest;
