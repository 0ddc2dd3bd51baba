-- SPDX-License-Identifier: Apache-2.0
-- A rebuild is done by the owner of history, who is no superuser and can carry over its own functions alone: one of another role is
-- named before anything is read, not at the swap. As in 0002 otherwise.

CREATE OR REPLACE FUNCTION stentor.schema_dependents(target name) RETURNS SETOF text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    WITH own AS (SELECT 'pg_class'::regclass AS classid, oid FROM pg_class WHERE relnamespace = target::regnamespace
                 UNION ALL SELECT 'pg_type'::regclass, oid FROM pg_type WHERE typnamespace = target::regnamespace),
    hanging AS (SELECT DISTINCT d.classid, d.objid FROM pg_depend d JOIN own ON d.refclassid = own.classid AND d.refobjid = own.oid
                WHERE d.deptype = 'n')
    SELECT format('%s hangs on it', pg_describe_object(classid, objid, 0)) FROM hanging
    WHERE (classid = 'pg_proc'::regclass)
       OR (classid = 'pg_rewrite'::regclass
           AND (SELECT relnamespace FROM pg_class c JOIN pg_rewrite r ON r.ev_class = c.oid WHERE r.oid = objid) <> target::regnamespace)
       OR (classid = 'pg_constraint'::regclass
           AND (SELECT connamespace FROM pg_constraint WHERE oid = objid) <> target::regnamespace)
       OR (classid = 'pg_class'::regclass AND (SELECT relnamespace FROM pg_class WHERE oid = objid) <> target::regnamespace)
    UNION ALL
    SELECT format('function %s belongs to %s, not to the schema''s owner', p.oid::regprocedure, p.proowner::regrole)
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = target AND p.proowner <> n.nspowner
    $$;
