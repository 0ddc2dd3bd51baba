-- SPDX-License-Identifier: Apache-2.0
-- `stentor rebuild` makes a rebuild schema: empty tables like those of the live schema, which it fills and then renames into the live
-- schema's place. These functions are in schema stentor, because the schemas themselves are renamed, and only their owner may call them.

-- Everything that `target` is made of but its rows, its functions (a swap moves those as they are) and its partitions
-- (stentor.copy_partitions makes them): one line each, without the schema's name, so that two schemas can be compared.
CREATE FUNCTION stentor.describe_schema(target name) RETURNS SETOF text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    WITH space AS (SELECT oid, nspname, nspowner, nspacl FROM pg_namespace WHERE nspname = target),
    relation AS (SELECT c.*, t.relname AS of_table FROM pg_class c JOIN space ON c.relnamespace = space.oid
                 LEFT JOIN pg_index i ON i.indexrelid = c.oid LEFT JOIN pg_class t ON t.oid = i.indrelid
                 WHERE NOT c.relispartition),
    line AS (
        SELECT format('owner %s', nspowner::regrole) FROM space
        UNION ALL
        SELECT format('schema grant %s to %s from %s option %s', a.privilege_type, a.grantee::regrole, a.grantor::regrole, a.is_grantable)
        FROM space, aclexplode(nspacl) a
        UNION ALL
        SELECT format('relation %s %s owner %s rls %s force %s persistence %s identity %s options %s access %s partitioned by %s',
                      relkind, relname, relowner::regrole, relrowsecurity, relforcerowsecurity, relpersistence, relreplident, reloptions,
                      relam, CASE WHEN relkind = 'p' THEN pg_get_partkeydef(oid) END) FROM relation
        UNION ALL
        SELECT format('grant %s on %s to %s from %s option %s', a.privilege_type, relname, a.grantee::regrole, a.grantor::regrole, a.is_grantable)
        FROM relation, aclexplode(relacl) a
        UNION ALL
        SELECT format('column %s.%s %s %s not null %s collation %s default %s generated %s identity %s storage %s statistics %s grants %s',
                      relname, attnum, attname, format_type(atttypid, atttypmod), attnotnull, attcollation::regcollation,
                      pg_get_expr(d.adbin, d.adrelid), attgenerated, attidentity, attstorage, coalesce(attstattarget, -1), attacl)
        FROM relation JOIN pg_attribute a ON attrelid = relation.oid AND attnum > 0 AND NOT attisdropped
        LEFT JOIN pg_attrdef d ON d.adrelid = attrelid AND d.adnum = attnum
        WHERE relkind NOT IN ('i', 'I')
        UNION ALL
        SELECT format('constraint %s on %s %s', conname, relname, pg_get_constraintdef(c.oid))
        FROM relation JOIN pg_constraint c ON conrelid = relation.oid
        UNION ALL
        SELECT format('index %s', pg_get_indexdef(oid)) FROM relation WHERE relkind IN ('i', 'I')
        UNION ALL
        SELECT format('policy %s on %s for %s to %s permissive %s using %s check %s', polname, relname, polcmd,
                      (SELECT array_agg(r::regrole ORDER BY r) FROM unnest(polroles) r), polpermissive,
                      pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid))
        FROM relation JOIN pg_policy ON polrelid = relation.oid
        UNION ALL
        SELECT format('trigger %s', pg_get_triggerdef(t.oid)) FROM relation JOIN pg_trigger t ON tgrelid = relation.oid AND NOT tgisinternal
        UNION ALL
        SELECT format('rule %s', pg_get_ruledef(r.oid)) FROM relation JOIN pg_rewrite r ON ev_class = relation.oid
        UNION ALL
        SELECT format('statistics %s', pg_get_statisticsobjdef(s.oid)) FROM space JOIN pg_statistic_ext s ON stxnamespace = space.oid
        UNION ALL
        SELECT format('type %s %s', typtype, typname) FROM space JOIN pg_type t ON typnamespace = space.oid
        WHERE typtype IN ('e', 'd', 'r', 'm') OR (typtype = 'c' AND EXISTS (SELECT FROM pg_class WHERE oid = typrelid AND relkind = 'c'))
        UNION ALL
        SELECT format('publication %s of %s', p.pubname, relname)
        FROM relation JOIN pg_publication_rel pr ON prrelid = relation.oid JOIN pg_publication p ON p.oid = prpubid
    )
    SELECT replace(line.format, quote_ident(target) || '.', '') FROM line
    $$;

-- What would be lost with the live schema and a swap cannot carry over: objects elsewhere that depend on its tables or types (views,
-- foreign keys, SQL-bodied functions), and functions in it that do. The owner is no superuser and can move its own functions alone:
-- one of another role is named here, before anything is read, and not at the swap.
CREATE FUNCTION stentor.schema_dependents(target name) RETURNS SETOF text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    WITH own AS (SELECT 'pg_class'::regclass AS classid, oid FROM pg_class WHERE relnamespace = target::regnamespace
                 UNION ALL SELECT 'pg_type'::regclass, oid FROM pg_type WHERE typnamespace = target::regnamespace),
    dependent AS (SELECT DISTINCT d.classid, d.objid FROM pg_depend d JOIN own ON d.refclassid = own.classid AND d.refobjid = own.oid
                WHERE d.deptype = 'n')
    SELECT format('%s depends on it', pg_describe_object(classid, objid, 0)) FROM dependent
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

-- Makes the partitions that `live` has and `rebuilt` lacks. Safe to repeat.
CREATE FUNCTION stentor.copy_partitions(live name, rebuilt name) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    child record;
BEGIN
    FOR child IN
        SELECT c.relname, p.relname AS parent, pg_get_expr(c.relpartbound, c.oid) AS bound
        FROM pg_class c JOIN pg_inherits i ON i.inhrelid = c.oid JOIN pg_class p ON p.oid = i.inhparent
        WHERE c.relnamespace = live::regnamespace AND c.relkind = 'r'
          AND NOT EXISTS (SELECT FROM pg_class o WHERE o.relnamespace = rebuilt::regnamespace AND o.relname = c.relname)
    LOOP
        EXECUTE format('CREATE TABLE %I.%I PARTITION OF %I.%I %s', rebuilt, child.relname, rebuilt, child.parent, child.bound);
    END LOOP;
END
$$;

CREATE FUNCTION stentor.grantee_name(role oid) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$ SELECT CASE WHEN role = 0 THEN 'PUBLIC' ELSE role::regrole::text END $$;

-- Makes the schema `rebuilt` with empty copies of these tables of `live`; one that a crash has left is dropped.
CREATE FUNCTION stentor.make_rebuild_schema(live name, rebuilt name, tables name[]) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET client_min_messages = warning
    AS $$
DECLARE
    source record;
    part record;
    acl record;
BEGIN
    EXECUTE format('DROP SCHEMA IF EXISTS %I CASCADE', rebuilt);
    EXECUTE format('CREATE SCHEMA %I', rebuilt);
    FOR acl IN SELECT a.* FROM pg_namespace, aclexplode(nspacl) a WHERE nspname = live LOOP
        EXECUTE format('GRANT %s ON SCHEMA %I TO %s', acl.privilege_type, rebuilt, stentor.grantee_name(acl.grantee));
    END LOOP;
    FOR source IN SELECT * FROM pg_class WHERE relnamespace = live::regnamespace AND relname = ANY (tables) LOOP
        EXECUTE format('CREATE TABLE %I.%I (LIKE %I.%I INCLUDING ALL EXCLUDING INDEXES)', rebuilt, source.relname, live, source.relname)
            || CASE WHEN source.relkind = 'p' THEN ' PARTITION BY ' || pg_get_partkeydef(source.oid) ELSE '' END;
        -- One by one, because LIKE would give them other names.
        FOR part IN SELECT conname, pg_get_constraintdef(oid) AS def FROM pg_constraint
                    WHERE conrelid = source.oid AND contype IN ('p', 'u', 'x') LOOP
            EXECUTE format('ALTER TABLE %I.%I ADD CONSTRAINT %I %s', rebuilt, source.relname, part.conname, part.def);
        END LOOP;
        FOR part IN SELECT pg_get_indexdef(indexrelid) AS def FROM pg_index
                    WHERE indrelid = source.oid AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid) LOOP
            EXECUTE replace(replace(part.def, ' ON ONLY ', ' ON '), format(' ON %I.%I ', live, source.relname),
                            format(' ON %I.%I ', rebuilt, source.relname));
        END LOOP;
        IF source.relrowsecurity THEN
            PERFORM stentor.isolate(format('%I.%I', rebuilt, source.relname)::regclass);
        END IF;
        FOR acl IN SELECT * FROM aclexplode(source.relacl) LOOP
            EXECUTE format('GRANT %s ON %I.%I TO %s', acl.privilege_type, rebuilt, source.relname, stentor.grantee_name(acl.grantee));
        END LOOP;
    END LOOP;
    PERFORM stentor.copy_partitions(live, rebuilt);
END
$$;

-- What a swap would change or lose besides the rows; no line: it may be done.
CREATE FUNCTION stentor.rebuild_differences(live name, rebuilt name) RETURNS SETOF text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    (SELECT 'only in ' || live || ': ' || l FROM (SELECT stentor.describe_schema(live) EXCEPT SELECT stentor.describe_schema(rebuilt)) AS d (l))
    UNION ALL
    (SELECT 'only in ' || rebuilt || ': ' || l FROM (SELECT stentor.describe_schema(rebuilt) EXCEPT SELECT stentor.describe_schema(live)) AS d (l))
    UNION ALL
    SELECT stentor.schema_dependents(live)
    $$;

-- The swap, called in the transaction that holds the live tables. Functions of the schema stay the same objects: their bodies
-- name the tables by the live schema's name, which the new tables now bear.
CREATE FUNCTION stentor.swap_rebuild_schema(live name, rebuilt name, old name) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    difference text;
    routine record;
BEGIN
    PERFORM stentor.copy_partitions(live, rebuilt);
    SELECT string_agg(d, '; ') INTO difference FROM stentor.rebuild_differences(live, rebuilt) AS d;
    IF difference IS NOT NULL THEN
        RAISE EXCEPTION 'the rebuilt schema is not like the live one: %', difference;
    END IF;
    EXECUTE format('ALTER SCHEMA %I RENAME TO %I', live, old);
    EXECUTE format('ALTER SCHEMA %I RENAME TO %I', rebuilt, live);
    FOR routine IN SELECT oid::regprocedure AS name FROM pg_proc WHERE pronamespace = old::regnamespace LOOP
        EXECUTE format('ALTER ROUTINE %s SET SCHEMA %I', routine.name, live);
    END LOOP;
END
$$;

-- Each row of a table as its key and a digest of all columns but the ignored ones, for comparing two tables.
CREATE FUNCTION stentor.digest_rows(target regclass, ignored name[]) RETURNS TABLE (key text, digest bytea)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET timezone = 'UTC'
    AS $$
DECLARE
    key_columns text;
    columns text;
BEGIN
    SELECT string_agg(quote_ident(attname), ', ' ORDER BY array_position(i.indkey::int2[], attnum)) INTO key_columns
    FROM pg_index i JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (i.indkey::int2[])
    WHERE i.indrelid = target AND i.indisprimary AND attname <> 'created_at';
    SELECT string_agg(quote_ident(attname), ', ' ORDER BY attname) INTO columns
    FROM pg_attribute WHERE attrelid = target AND attnum > 0 AND NOT attisdropped AND attname <> ALL (ignored);
    RETURN QUERY EXECUTE format('SELECT concat_ws('' '', %s), sha256(convert_to(ROW(%s)::text, ''UTF8'')) FROM %s',
                                key_columns, columns, target);
END
$$;
