-- SPDX-License-Identifier: Apache-2.0
-- A unit's tables: found by their bounds, counted, detached, dropped. The archiver owns no table, so what changes one is a definer
-- function, and each checks by itself that it may.

-- The tables that are attached now. Bounds are read from the catalogue, never from a table's name.
CREATE FUNCTION archive.partitions(of_kind text)
    RETURNS TABLE (ordinal smallint, parent text, class text, leaf oid, above oid, starts_at timestamptz, ends_at timestamptz)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET datestyle = 'ISO'
    AS $$
    WITH found AS (
        SELECT k.ordinal, k.parent, c.oid AS leaf, p.parentrelid::oid AS above, pg_get_expr(c.relpartbound, c.oid) AS bound,
               (SELECT pg_get_expr(u.relpartbound, u.oid) FROM pg_class u WHERE u.oid = p.parentrelid) AS class_bound
        FROM archive.kinds k CROSS JOIN pg_partition_tree(k.parent::regclass) p JOIN pg_class c ON c.oid = p.relid
        WHERE k.kind = of_kind AND p.isleaf AND p.parentrelid IS NOT NULL)
    SELECT f.ordinal, f.parent, CASE WHEN f.class_bound ~ '^FOR VALUES IN \(''[RSB]''\)$' THEN substr(f.class_bound, 17, 1) ELSE 'R' END,
           f.leaf, f.above, substring(f.bound FROM 'FROM \(''([^'']+)''\)')::timestamptz,
           substring(f.bound FROM 'TO \(''([^'']+)''\)')::timestamptz
    FROM found f WHERE f.bound ~ 'FROM \(''[^'']+''\) TO \(''[^'']+''\)'
    $$;

-- Rows, bounds and digest of each tenant in a table. The digest is Postgres's own, over the row's values in these columns, which costs
-- less than half of their text's. The hash of a record is a sum over its columns, so that two rows which swap a value have the same sum of
-- hashes: hence the hash of that hash. json has no hash; its text does. common/archive/row_hash.c makes the same of an object's rows, where
-- jsonb and names are text.
CREATE FUNCTION archive.count_table(target regclass, time_column name, id_column name, columns name[])
    RETURNS TABLE (tenant text, rows bigint, min_created timestamptz, max_created timestamptz, min_id text, max_id text, digest numeric)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET datestyle = 'ISO' SET bytea_output = 'hex'
        SET jit = off SET statement_timeout = 0
    AS $$
BEGIN
    RETURN QUERY EXECUTE format(
        'SELECT tenant_id::text, count(*), min(%1$I), max(%1$I), min(%2$I)::text, max(%2$I)::text,'
        ' sum(hashtextextended(hash_record_extended(ROW(%3$s), 0)::text, 0)) FROM %4$s GROUP BY tenant_id',
        time_column, id_column,
        (SELECT string_agg(quote_ident(a.attname) || CASE WHEN a.atttypid IN ('json'::regtype, 'jsonb'::regtype, 'name'::regtype, '"char"'::regtype) THEN '::text' ELSE '' END, ', ' ORDER BY c)
         FROM unnest(columns) AS c JOIN pg_attribute a ON a.attrelid = target AND a.attname = c), target);
END
$$;

CREATE FUNCTION archive.value_columns(target regclass, skipped name[]) RETURNS name[]
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$ SELECT array_agg(attname ORDER BY attname) FROM pg_attribute
          WHERE attrelid = target AND attnum > 0 AND NOT attisdropped AND attname <> ALL (skipped) $$;

-- What a sealed unit holds now, by table and tenant.
CREATE FUNCTION archive.count_unit(of_unit text)
    RETURNS TABLE (ordinal smallint, tenant text, rows bigint, min_created timestamptz, max_created timestamptz, min_id text, max_id text,
                   digest numeric, columns name[])
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    u archive.units;
    t record;
BEGIN
    SELECT * INTO u FROM archive.units WHERE id = of_unit AND state <> 'open';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'archive.count_unit: the unit ''%'' is not sealed', of_unit;
    END IF;
    FOR t IN SELECT p.leaf::regclass AS leaf, k.* FROM archive.partitions(u.kind) p JOIN archive.kinds k USING (parent)
             WHERE p.class = u.class AND p.starts_at = u.starts_at AND p.ends_at = u.ends_at LOOP
        RETURN QUERY SELECT t.ordinal, c.tenant, c.rows, c.min_created, c.max_created, c.min_id, c.max_id, c.digest, v
                     FROM archive.value_columns(t.leaf, t.skipped) AS v, archive.count_table(t.leaf, t.time_column, t.id_column, v) AS c;
    END LOOP;
END
$$;

-- The first difference between a table and what was counted of it; null: none.
CREATE FUNCTION archive.count_difference(of_unit text, of_ordinal smallint, target regclass) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    k archive.kinds;
    counted_columns name[];
    difference text;
BEGIN
    SELECT * INTO k FROM archive.kinds WHERE kind = (SELECT kind FROM archive.units WHERE id = of_unit) AND ordinal = of_ordinal;
    counted_columns := coalesce((SELECT c.columns FROM archive.counts c WHERE c.unit = of_unit AND c.ordinal = of_ordinal LIMIT 1),
                                archive.value_columns(target, k.skipped));
    SELECT format('%s of tenant ''%s'': counted %s rows, there are %s%s', k.parent, coalesce(c.tenant, n.tenant), coalesce(c.rows, 0),
                  coalesce(n.rows, 0), CASE WHEN c.rows = n.rows THEN ' with other content' ELSE '' END) INTO difference
    FROM (SELECT * FROM archive.counts WHERE unit = of_unit AND ordinal = of_ordinal) c
    FULL JOIN (SELECT * FROM archive.count_table(target, k.time_column, k.id_column, counted_columns)) n ON n.tenant = c.tenant
    WHERE (c.rows, c.digest, c.min_created, c.max_created, c.min_id, c.max_id)
          IS DISTINCT FROM (n.rows, n.digest, n.min_created, n.max_created, n.min_id, n.max_id)
    ORDER BY coalesce(c.tenant, n.tenant) LIMIT 1;
    RETURN difference;
END
$$;

-- Where a unit's stored rows differ from the counted ones. same_rows: as many rows, so other content or bounds.
CREATE FUNCTION archive.stored_differences(of_unit text)
    RETURNS TABLE (ordinal smallint, tenant text, same_rows boolean, difference text)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT ordinal, tenant, c.rows IS NOT DISTINCT FROM o.rows,
           format('%s of tenant ''%s'': counted %s rows, stored %s%s', k.parent, tenant, coalesce(c.rows, 0), coalesce(o.rows, 0),
                  CASE WHEN c.rows = o.rows THEN ' with other content than Postgres counted' ELSE '' END)
    FROM (SELECT ordinal, tenant, rows, min_created, max_created, digest FROM archive.counts WHERE unit = of_unit) c
    FULL JOIN (SELECT ordinal, tenant, sum(rows)::bigint AS rows, min(min_created) AS min_created, max(max_created) AS max_created,
                      sum(digest) AS digest
               FROM archive.objects WHERE unit = of_unit AND kind = 'part' AND state = 'verified' GROUP BY ordinal, tenant) o
    USING (ordinal, tenant)
    LEFT JOIN archive.kinds k USING (ordinal)
    WHERE k.kind = (SELECT u.kind FROM archive.units u WHERE u.id = of_unit)
      AND (c.rows, c.min_created, c.max_created, c.digest) IS DISTINCT FROM (o.rows, o.min_created, o.max_created, o.digest)
    $$;

-- Why a unit's stored rows do not hold all that was counted; null: they do.
CREATE FUNCTION archive.stored_difference(of_unit text) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT coalesce(
        (SELECT format('object ''%s'' is not verified', o.key) FROM archive.objects o
         WHERE o.unit = of_unit AND o.state = 'written' ORDER BY o.key LIMIT 1),
        (SELECT d.difference FROM archive.stored_differences(of_unit) d ORDER BY d.ordinal, d.tenant LIMIT 1))
    $$;

-- Counts the attached tables again and notes that they are as counted. Long and without locks: so that removal is short.
CREATE FUNCTION archive.check_unit(of_unit text, epoch bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    u archive.units;
    difference text;
BEGIN
    SELECT * INTO u FROM archive.units WHERE id = of_unit AND owner_epoch = epoch AND state = 'committed';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'archive.check_unit: the unit ''%'' is not committed under this epoch', of_unit;
    END IF;
    SELECT d INTO difference FROM archive.partitions(u.kind) p, archive.count_difference(of_unit, p.ordinal, p.leaf::regclass) AS d
    WHERE p.class = u.class AND p.starts_at = u.starts_at AND p.ends_at = u.ends_at AND d IS NOT NULL LIMIT 1;
    difference := coalesce(difference, archive.stored_difference(of_unit));
    IF difference IS NOT NULL THEN
        RAISE EXCEPTION 'unit ''%'' is not removed: %', of_unit, difference USING ERRCODE = 'check_violation';
    END IF;
    UPDATE archive.units SET checked_at = clock_timestamp() WHERE id = of_unit AND owner_epoch = epoch AND state = 'committed';
END
$$;

-- Detaches the unit's tables and says so in its row, in the caller's transaction. False: a reader or writer was in the way for 200 ms;
-- nothing was changed. Plain DETACH: CONCURRENTLY runs in no function, and cut short it hides rows.
CREATE FUNCTION archive.remove_unit(of_unit text, epoch bigint) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '200ms' SET client_min_messages = warning
    AS $$
DECLARE
    u archive.units;
    t record;
    difference text;
    names text[] := '{}';
    tables integer;
BEGIN
    SELECT * INTO u FROM archive.units WHERE id = of_unit AND owner_epoch = epoch AND state = 'committed' FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'archive.remove_unit: the unit ''%'' is not committed under this epoch', of_unit;
    ELSIF u.checked_at IS NULL OR u.checked_at < now() - interval '1 day' THEN
        RAISE EXCEPTION 'archive.remove_unit: the rows of unit ''%'' were not counted again within a day', of_unit;
    END IF;
    difference := archive.stored_difference(of_unit);
    IF difference IS NOT NULL THEN
        RAISE EXCEPTION 'unit ''%'' is not removed: %', of_unit, difference USING ERRCODE = 'check_violation';
    END IF;
    SELECT count(*) INTO tables FROM archive.kinds k WHERE k.kind = u.kind;
    FOR t IN SELECT p.*, c.relname, c.oid::regclass AS leaf_name, p.above::regclass AS above_name
             FROM archive.partitions(u.kind) p JOIN pg_class c ON c.oid = p.leaf
             WHERE p.class = u.class AND p.starts_at = u.starts_at AND p.ends_at = u.ends_at ORDER BY p.ordinal LOOP
        EXECUTE format('ALTER TABLE %s DETACH PARTITION %s', t.above_name, t.leaf_name);
        EXECUTE format('ALTER TABLE %s RENAME TO %I', t.leaf_name, format('d%s_%s', t.leaf, left(t.relname, 48)));
        EXECUTE format('ALTER TABLE %s SET SCHEMA archive_drop', t.leaf::regclass);
        names := names || format('d%s_%s', t.leaf, left(t.relname, 48));
    END LOOP;
    IF cardinality(names) <> tables THEN
        RAISE EXCEPTION 'archive.remove_unit: unit ''%'' has % tables, % found', of_unit, tables, cardinality(names);
    END IF;
    UPDATE archive.units SET state = 'removing', detached = names, removed_at = now() WHERE id = of_unit;
    RETURN true;
EXCEPTION WHEN lock_not_available THEN
    RETURN false;
END
$$;

-- Drops the detached tables after the grace, if every object was seen since and the rows are still as counted.
CREATE FUNCTION archive.drop_unit(of_unit text, epoch bigint, grace interval) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET client_min_messages = warning
    AS $$
DECLARE
    u archive.units;
    target regclass;
    difference text;
BEGIN
    SELECT * INTO u FROM archive.units WHERE id = of_unit AND owner_epoch = epoch AND state = 'removing' FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'archive.drop_unit: the unit ''%'' is not being removed under this epoch', of_unit;
    ELSIF u.removed_at > now() - grace THEN
        RAISE EXCEPTION 'archive.drop_unit: the grace of unit ''%'' is not over', of_unit;
    ELSIF u.heads_at IS NULL OR u.heads_at < u.removed_at OR u.heads_at < now() - interval '1 day' THEN
        RAISE EXCEPTION 'archive.drop_unit: the objects of unit ''%'' were not seen within a day', of_unit;
    END IF;
    difference := archive.stored_difference(of_unit);
    FOR i IN 1 .. cardinality(u.detached) LOOP
        target := to_regclass(format('archive_drop.%I', u.detached[i]));
        IF target IS NOT NULL THEN
            difference := coalesce(difference, archive.count_difference(of_unit, (i - 1)::smallint, target));
        END IF;
    END LOOP;
    IF difference IS NOT NULL THEN
        RAISE EXCEPTION 'unit ''%'' is not dropped: %', of_unit, difference USING ERRCODE = 'check_violation';
    END IF;
    FOR i IN 1 .. cardinality(u.detached) LOOP
        EXECUTE format('DROP TABLE IF EXISTS archive_drop.%I', u.detached[i]);
    END LOOP;
    UPDATE archive.units SET state = 'removed' WHERE id = of_unit;
END
$$;

GRANT EXECUTE ON FUNCTION archive.partitions(text) TO stentor_archiver, stentor_cli;
GRANT EXECUTE ON FUNCTION archive.count_unit(text), archive.stored_differences(text), archive.stored_difference(text), archive.check_unit(text, bigint),
    archive.remove_unit(text, bigint), archive.drop_unit(text, bigint, interval) TO stentor_archiver;
