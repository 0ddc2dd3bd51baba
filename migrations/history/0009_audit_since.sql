-- SPDX-License-Identifier: Apache-2.0
-- How far back an audit can look in history: what was made before this may be gone (null: nothing is), and is not missed.
-- In the schema stentor, because a rebuild swaps the whole schema history for another one.

CREATE FUNCTION stentor.history_audit_since() RETURNS timestamptz
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT max(w.floor) FROM stentor.history_walked w $$;
REVOKE ALL ON FUNCTION stentor.history_audit_since() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION stentor.history_audit_since() TO stentor_cli;
