-- SPDX-License-Identifier: Apache-2.0
-- What each unit consisted of when it was committed, cooled or expired: one document for each generation, chained by the hash of the one
-- before, here and as objects `manifest/<unit>/<generation>.json`. And tables filled from object storage again.

CREATE TABLE archive.manifests (
    number     bigint      PRIMARY KEY,
    unit       text        COLLATE "C" NOT NULL REFERENCES archive.units,
    generation integer     NOT NULL CHECK (generation > 0),
    key        text        COLLATE "C" NOT NULL UNIQUE,
    body       text        NOT NULL,
    previous   bytea       NOT NULL CHECK (length(previous) = 32),
    hash       bytea       NOT NULL CHECK (hash = sha256(convert_to(body, 'UTF8'))),
    made_at    timestamptz NOT NULL DEFAULT now(),
    stored_at  timestamptz, -- read back from the bucket
    UNIQUE (unit, generation)
);

-- The unit's next manifest. Its text is fixed here before it is stored there, so a process that was killed between stores the same.
CREATE FUNCTION archive.make_manifest(of_unit text, epoch bigint, removed boolean)
    RETURNS TABLE (manifest_number bigint, manifest_key text, manifest_body text, manifest_hash bytea)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET datestyle = 'ISO'
    AS $$
DECLARE
    u archive.units;
    last archive.manifests;
    made archive.manifests;
BEGIN
    LOCK TABLE archive.manifests IN SHARE ROW EXCLUSIVE MODE;
    SELECT * INTO u FROM archive.units WHERE id = of_unit AND owner_epoch = epoch AND state IN ('verified', 'removed', 'expired');
    IF NOT FOUND THEN
        RAISE EXCEPTION 'archive.make_manifest: the unit ''%'' is not verified or removed under this epoch', of_unit;
    END IF;
    SELECT * INTO made FROM archive.manifests WHERE unit = of_unit AND stored_at IS NULL;
    IF NOT FOUND THEN
        SELECT * INTO last FROM archive.manifests ORDER BY number DESC LIMIT 1;
        made.number := coalesce(last.number, 0) + 1;
        made.generation := u.generation + 1;
        made.key := format('manifest/%s/%s.json', of_unit, lpad(made.generation::text, 5, '0'));
        made.previous := coalesce(last.hash, decode(repeat('00', 32), 'hex'));
        SELECT json_build_object('manifest', 1, 'installation', i.id, 'number', made.number, 'unit', of_unit, 'generation', made.generation,
            'starts_at', u.starts_at, 'ends_at', u.ends_at, 'removed', removed, 'previous', encode(made.previous, 'hex'),
            'counts', (SELECT coalesce(json_agg(json_build_object('table', k.parent, 'tenant', c.tenant, 'rows', c.rows,
                'min_created', c.min_created, 'max_created', c.max_created) ORDER BY c.ordinal, c.tenant), '[]')
                FROM archive.counts c JOIN archive.kinds k ON k.kind = u.kind AND k.ordinal = c.ordinal WHERE c.unit = of_unit),
            'objects', (SELECT coalesce(json_agg(json_build_object('key', o.key, 'kind', o.kind, 'tenant', o.tenant, 'rows', o.rows,
                'bytes', o.bytes, 'sha256', encode(o.sha256, 'hex'), 'row_sum', encode(o.row_sum, 'hex'), 'format', o.format)
                ORDER BY o.ordinal, o.tenant, o.kind DESC, o.part, o.key), '[]')
                FROM archive.objects o WHERE o.unit = of_unit AND o.state = 'verified'))::text
        INTO made.body FROM archive.installation i;
        made.hash := sha256(convert_to(made.body, 'UTF8'));
        INSERT INTO archive.manifests VALUES (made.number, of_unit, made.generation, made.key, made.body, made.previous, made.hash);
    END IF;
    RETURN QUERY SELECT made.number, made.key, made.body, made.hash;
END
$$;

-- It was read back: the unit bears it from now on.
CREATE FUNCTION archive.store_manifest(of_unit text, epoch bigint, of_number bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    m archive.manifests;
BEGIN
    UPDATE archive.manifests SET stored_at = now() WHERE number = of_number AND unit = of_unit AND stored_at IS NULL RETURNING * INTO m;
    UPDATE archive.units u SET generation = m.generation, manifest_key = m.key, manifest_hash = m.hash
        WHERE u.id = m.unit AND u.owner_epoch = epoch;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'archive.store_manifest: unit ''%'' has no manifest % to store under this epoch', of_unit, of_number;
    END IF;
    PERFORM archive.record('manifest', of_unit, jsonb_build_object('key', m.key, 'sha256', encode(m.hash, 'hex')));
END
$$;

-- The first manifest that does not follow from the one before; null: the chain is whole.
CREATE FUNCTION archive.manifest_fault() RETURNS bigint
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT min(c.number) FROM (
        SELECT m.*, coalesce(lag(m.hash) OVER w, decode(repeat('00', 32), 'hex')) AS before, coalesce(lag(m.number) OVER w, 0) AS number_before
        FROM archive.manifests m WINDOW w AS (ORDER BY m.number)) c
    WHERE c.previous <> c.before OR c.number <> c.number_before + 1 OR c.hash <> sha256(convert_to(c.body, 'UTF8'))
    $$;

-- Where a unit's tables belong: the parent's part for the class, or the parent itself when it has no parts by class.
CREATE FUNCTION archive.home_of(parent text, of_class text) RETURNS regclass
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT coalesce((SELECT t.relid FROM pg_partition_tree(parent::regclass) t JOIN pg_class c ON c.oid = t.relid
                     WHERE NOT t.isleaf AND t.level = 1 AND pg_get_expr(c.relpartbound, c.oid) = format('FOR VALUES IN (%L)', of_class)),
                    parent::regclass)
    $$;

CREATE FUNCTION archive.restore_name(of_unit text, of_ordinal smallint) RETURNS name
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
    AS $$ SELECT (regexp_replace(of_unit, '[^a-z0-9]+', '_', 'g') || '_' || of_ordinal)::name $$;

-- A fresh table for each of the unit's, empty, to be filled by the caller. What an earlier attempt left is dropped.
CREATE FUNCTION archive.restore_begin(of_unit text, epoch bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET client_min_messages = warning
    AS $$
DECLARE
    k record;
BEGIN
    PERFORM FROM archive.units u JOIN archive.restores r ON r.unit = u.id AND r.until > now()
        WHERE u.id = of_unit AND u.owner_epoch = epoch AND u.state = 'removed' FOR UPDATE OF u;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'archive.restore_begin: the unit ''%'' is not removed and wanted back under this epoch', of_unit;
    END IF;
    FOR k IN SELECT c.*, archive.restore_name(of_unit, c.ordinal) AS target FROM archive.kinds c JOIN archive.units u USING (kind)
             WHERE u.id = of_unit LOOP
        EXECUTE format('DROP TABLE IF EXISTS archive_restore.%I', k.target);
        EXECUTE format('CREATE TABLE archive_restore.%I (LIKE %s INCLUDING ALL)', k.target, k.parent::regclass);
        EXECUTE format('GRANT INSERT ON archive_restore.%I TO stentor_archiver', k.target);
    END LOOP;
    UPDATE archive.restores SET checked_at = NULL WHERE unit = of_unit;
END
$$;

-- Closes the tables, counts them, and proves their bounds, so that attaching them is short.
CREATE FUNCTION archive.restore_check(of_unit text, epoch bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    u archive.units;
    k record;
    difference text;
BEGIN
    SELECT * INTO u FROM archive.units WHERE id = of_unit AND owner_epoch = epoch AND state = 'removed' FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'archive.restore_check: the unit ''%'' is not removed under this epoch', of_unit;
    END IF;
    FOR k IN SELECT c.*, archive.restore_name(of_unit, c.ordinal) AS target FROM archive.kinds c WHERE c.kind = u.kind LOOP
        EXECUTE format('REVOKE INSERT ON archive_restore.%I FROM stentor_archiver', k.target);
        difference := archive.count_difference(of_unit, k.ordinal, format('archive_restore.%I', k.target)::regclass);
        IF difference IS NOT NULL THEN
            RAISE EXCEPTION 'unit ''%'' is not restored: %', of_unit, difference USING ERRCODE = 'check_violation';
        END IF;
        EXECUTE format('ALTER TABLE archive_restore.%I DROP CONSTRAINT IF EXISTS restored_bounds, ADD CONSTRAINT restored_bounds'
                       ' CHECK (%I IS NOT NULL AND %I >= %L AND %I < %L)', k.target, k.time_column, k.time_column, u.starts_at,
                       k.time_column, u.ends_at);
    END LOOP;
    UPDATE archive.restores SET checked_at = now() WHERE unit = of_unit;
END
$$;

-- False: a reader or writer was in the way for 200 ms; nothing was changed.
CREATE FUNCTION archive.restore_attach(of_unit text, epoch bigint) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '200ms' SET client_min_messages = warning
    AS $$
DECLARE
    u archive.units;
    k record;
BEGIN
    SELECT * INTO u FROM archive.units WHERE id = of_unit AND owner_epoch = epoch AND state = 'removed' FOR UPDATE;
    PERFORM FROM archive.restores WHERE unit = u.id AND checked_at IS NOT NULL AND until > now();
    IF NOT FOUND THEN
        RAISE EXCEPTION 'archive.restore_attach: the unit ''%'' is not checked and wanted back under this epoch', of_unit;
    END IF;
    FOR k IN SELECT c.*, archive.restore_name(of_unit, c.ordinal) AS target FROM archive.kinds c WHERE c.kind = u.kind LOOP
        EXECUTE format('ALTER TABLE %s ATTACH PARTITION archive_restore.%I FOR VALUES FROM (%L) TO (%L)',
                       archive.home_of(k.parent, u.class), k.target, u.starts_at, u.ends_at);
    END LOOP;
    UPDATE archive.units SET state = 'restored' WHERE id = of_unit;
    UPDATE archive.restores SET attached_at = now() WHERE unit = of_unit;
    RETURN true;
EXCEPTION WHEN lock_not_available THEN
    RETURN false;
END
$$;

-- The end of a restore: its tables go, which hold nothing that the objects and the late tables do not. False as above.
CREATE FUNCTION archive.restore_end(of_unit text, epoch bigint) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '200ms' SET client_min_messages = warning
    AS $$
DECLARE
    u archive.units;
    k record;
BEGIN
    SELECT * INTO u FROM archive.units WHERE id = of_unit AND owner_epoch = epoch AND state = 'restored' FOR UPDATE;
    IF NOT FOUND OR EXISTS (SELECT FROM archive.restores WHERE unit = of_unit AND until > now()) THEN
        RAISE EXCEPTION 'archive.restore_end: the unit ''%'' is not restored under this epoch, or is wanted still', of_unit;
    END IF;
    FOR k IN SELECT c.*, archive.restore_name(of_unit, c.ordinal) AS target FROM archive.kinds c WHERE c.kind = u.kind LOOP
        EXECUTE format('DROP TABLE IF EXISTS archive_restore.%I', k.target);
    END LOOP;
    DELETE FROM archive.restores WHERE unit = of_unit;
    UPDATE archive.units SET state = 'removed' WHERE id = of_unit;
    RETURN true;
EXCEPTION WHEN lock_not_available THEN
    RETURN false;
END
$$;

-- The late rows of an expired unit, at most so many of each table; how many went.
CREATE FUNCTION archive.drop_late(of_unit text, epoch bigint, at_most integer) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    u archive.units;
    k archive.kinds;
    by_class boolean;
    rows bigint;
    dropped bigint := 0;
BEGIN
    SELECT * INTO u FROM archive.units WHERE id = of_unit AND owner_epoch = epoch AND state = 'expired';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'archive.drop_late: the unit ''%'' is not expired under this epoch', of_unit;
    END IF;
    FOR k IN SELECT * FROM archive.kinds c WHERE c.kind = u.kind AND to_regclass(c.late) IS NOT NULL LOOP
        by_class := EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = k.late::regclass AND a.attname = 'retention_class');
        EXECUTE format('DELETE FROM %s WHERE ctid = ANY (ARRAY(SELECT ctid FROM %s WHERE %I >= $1 AND %I < $2%s LIMIT $4))', k.late::regclass,
                       k.late::regclass, k.time_column, k.time_column, CASE WHEN by_class THEN ' AND retention_class = $3' ELSE '' END)
            USING u.starts_at, u.ends_at, u.class, at_most;
        GET DIAGNOSTICS rows = ROW_COUNT;
        dropped := dropped + rows;
    END LOOP;
    RETURN dropped;
END
$$;

GRANT SELECT ON archive.manifests TO stentor_archiver, stentor_cli;
GRANT EXECUTE ON FUNCTION archive.make_manifest(text, bigint, boolean), archive.store_manifest(text, bigint, bigint),
    archive.restore_name(text, smallint), archive.restore_begin(text, bigint), archive.restore_check(text, bigint),
    archive.restore_attach(text, bigint), archive.restore_end(text, bigint), archive.drop_late(text, bigint, integer) TO stentor_archiver;
GRANT EXECUTE ON FUNCTION archive.manifest_fault() TO stentor_archiver, stentor_cli;
