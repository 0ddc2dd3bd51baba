-- SPDX-License-Identifier: Apache-2.0
-- History by retention class and period, so that whole tables can be archived and removed. A period that is sealed (its unit is archived, or
-- was removed) is never written again: what still comes for it goes to the late tables, merged by the same law, and readers merge the two.

-- The class in an id (common/model/retention): 'R', 'S' or 'B'; what is not known is kept longest.
CREATE FUNCTION stentor.retention_class(id text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN pg_catalog.length(id) >= 26 AND pg_catalog.substr(pg_catalog.right(id, 26), 11, 1) COLLATE pg_catalog."C" IN ('S', 'B')
                THEN pg_catalog.substr(pg_catalog.right(id, 26), 11, 1) ELSE 'R' END;
GRANT EXECUTE ON FUNCTION stentor.retention_class(text) TO stentor_cli;

-- ---- sealed periods, and how long a new partition is ----
-- In schema stentor, because a rebuild replaces the schema archiver as a whole.

CREATE TABLE stentor.sealed_periods (
    class     text        COLLATE "C" NOT NULL CHECK (class IN ('R', 'S', 'B')),
    starts_at timestamptz NOT NULL,
    ends_at   timestamptz NOT NULL,
    PRIMARY KEY (class, ends_at),
    CHECK (starts_at < ends_at)
);
CREATE INDEX sealed_periods_end ON stentor.sealed_periods (ends_at); -- each flush asks for the newest
GRANT SELECT ON stentor.sealed_periods TO stentor_archiver, stentor_cli;

CREATE TABLE stentor.partition_periods (
    class  text COLLATE "C" PRIMARY KEY CHECK (class IN ('R', 'S', 'B')),
    period text COLLATE "C" NOT NULL CHECK (period IN ('month', 'day'))
);
INSERT INTO stentor.partition_periods VALUES ('R', 'month'), ('S', 'month'), ('B', 'month');

-- The archiver says so at its start. Partitions that are there stay as they are.
CREATE FUNCTION stentor.set_partition_periods(classes text[], periods text[]) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    UPDATE stentor.partition_periods p SET period = n.period FROM unnest(classes, periods) AS n (class, period)
    WHERE p.class = n.class AND p.period <> n.period
    $$;
GRANT EXECUTE ON FUNCTION stentor.set_partition_periods(text[], text[]) TO stentor_archiver;

-- Seals a period in the caller's transaction, when no flush is in the air that took it for open: a flush has its lock on the tables before it
-- reads the sealed periods. Fails where it would wait for longer than 200 ms.
CREATE FUNCTION stentor.seal_period(of_class text, starts_at timestamptz, ends_at timestamptz) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '200ms'
    AS $$
BEGIN
    LOCK TABLE archiver.notifications, archiver.delivery_attempts IN SHARE ROW EXCLUSIVE MODE;
    INSERT INTO stentor.sealed_periods VALUES (of_class, seal_period.starts_at, seal_period.ends_at);
END
$$;
GRANT EXECUTE ON FUNCTION stentor.seal_period(text, timestamptz, timestamptz) TO stentor_archiver;

-- No unit is sealed, detached or attached while a rebuild runs: it copies what is attached when it begins.
CREATE FUNCTION archive.on_history_moved() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF NEW.kind <> 'notifications' OR NEW.state IN ('open', 'counted', 'written', 'verified', 'committed', 'expired')
        OR (TG_OP = 'UPDATE' AND NEW.state = OLD.state) THEN
        RETURN NEW;
    ELSIF NOT pg_try_advisory_xact_lock_shared(hashtextextended('stentor.rebuild.history', 0)) THEN
        RAISE EXCEPTION 'unit ''%'' does not become %: a rebuild of history runs', NEW.id, NEW.state
            USING ERRCODE = 'object_not_in_prerequisite_state';
    ELSIF NEW.state = 'sealed' THEN
        PERFORM stentor.seal_period(NEW.class, NEW.starts_at, NEW.ends_at);
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER history_moved BEFORE INSERT OR UPDATE OF state ON archive.units FOR EACH ROW EXECUTE FUNCTION archive.on_history_moved();
GRANT EXECUTE ON FUNCTION archive.on_history_moved() TO stentor_archiver;

-- ---- making partitions ----

-- Which of a table's periods have a partition, and which are sealed.
CREATE FUNCTION stentor.covered_periods(target regclass, of_class text) RETURNS tstzmultirange
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET datestyle = 'ISO'
    AS $$
    SELECT coalesce(range_agg(tstzrange(b.starts_at, b.ends_at)), '{}') FROM (
        SELECT substring(e.bound FROM 'FROM \(''([^'']+)''\)')::timestamptz AS starts_at,
               substring(e.bound FROM 'TO \(''([^'']+)''\)')::timestamptz AS ends_at
        FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid, pg_get_expr(c.relpartbound, c.oid) AS e (bound)
        WHERE i.inhparent = target AND e.bound ~ '^FOR VALUES FROM \(''[^'']+''\) TO \(''[^'']+''\)$'
        UNION ALL
        SELECT s.starts_at, s.ends_at FROM stentor.sealed_periods s WHERE s.class = of_class) b
    $$;

-- One partition. A table of its name that is none (detached by hand) is left alone: the name gets a number.
CREATE FUNCTION stentor.make_partition(target regclass, starts_at timestamptz, ends_at timestamptz) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET timezone = 'UTC'
    AS $$
DECLARE
    space name;
    stem name;
    wanted name;
BEGIN
    SELECT n.nspname, c.relname INTO space, stem FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = target;
    stem := stem || to_char(starts_at AT TIME ZONE 'UTC', '"_y"YYYY"m"MM')
            || CASE WHEN ends_at = starts_at + interval '1 day' THEN to_char(starts_at AT TIME ZONE 'UTC', '"d"DD') ELSE '' END;
    wanted := stem;
    FOR number IN 2 .. 100 LOOP
        EXIT WHEN to_regclass(format('%I.%I', space, wanted)) IS NULL;
        wanted := stem || '_' || number;
    END LOOP;
    EXECUTE format('CREATE TABLE %I.%I PARTITION OF %s FOR VALUES FROM (%L) TO (%L)', space, wanted, target, starts_at, ends_at);
END
$$;

-- The months from that of `since` to that of `until`, each as one partition or as days. A month of which a part is covered is filled by days:
-- the length was changed. Days are not made further ahead than 45 days.
CREATE FUNCTION stentor.make_partitions(target regclass, of_class text, since timestamptz, until timestamptz) RETURNS integer
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET timezone = 'UTC'
    AS $$
DECLARE
    by_day boolean := coalesce((SELECT period = 'day' FROM stentor.partition_periods WHERE class = of_class), false);
    day_end timestamptz := date_trunc('day', greatest(since, now()) + interval '46 days', 'UTC');
    covered tstzmultirange := stentor.covered_periods(target, of_class);
    month_at timestamptz := date_trunc('month', since, 'UTC');
    month_end timestamptz;
    day_at timestamptz;
    made integer := 0;
BEGIN
    WHILE month_at <= until LOOP
        month_end := month_at + interval '1 month';
        IF by_day OR covered && tstzrange(month_at, month_end) THEN
            FOR day_at IN SELECT d FROM generate_series(month_at, month_end - interval '1 day', interval '1 day') AS d
                          WHERE NOT covered && tstzrange(d, d + interval '1 day') AND (d < day_end OR NOT by_day) LOOP
                PERFORM stentor.make_partition(target, day_at, day_at + interval '1 day');
                made := made + 1;
            END LOOP;
        ELSE
            PERFORM stentor.make_partition(target, month_at, month_end);
            made := made + 1;
        END IF;
        month_at := month_end;
    END LOOP;
    RETURN made;
END
$$;

-- As migrations/stentor/0002_partitions.sql says; the tables may also be partitioned by class first, and one class may be named by its table.
CREATE OR REPLACE FUNCTION stentor.ensure_partitions(parent regclass, since timestamptz, until timestamptz) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    root oid := pg_partition_root(parent);
    target record;
    made integer := 0;
BEGIN
    PERFORM FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.oid = root AND c.relkind = 'p' AND c.relpersistence = 'p' AND pg_get_userbyid(c.relowner) = current_user
      AND (SELECT p.relkind FROM pg_class p WHERE p.oid = parent) = 'p'
      AND (n.nspname, c.relname) IN (('dispatcher', 'ledger'), ('archiver', 'notifications'), ('archiver', 'delivery_attempts'),
                                     ('archiver_rebuild', 'notifications'), ('archiver_rebuild', 'delivery_attempts'))
      AND has_table_privilege(session_user, c.oid, 'INSERT');
    IF NOT FOUND THEN
        RAISE EXCEPTION 'ensure_partitions: it makes no months for the table ''%''', parent USING ERRCODE = 'insufficient_privilege';
    ELSIF NOT (isfinite(since) AND isfinite(until)) THEN
        RAISE EXCEPTION 'ensure_partitions: since and until must be finite'; -- a step from infinity stays there for ever
    ELSIF until > since + interval '10 years' THEN
        RAISE EXCEPTION 'ensure_partitions: more than ten years asked for';
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('stentor.ensure_partitions'), root::integer);
    FOR target IN
        SELECT t.relid AS leaf_parent, substring(pg_get_expr(c.relpartbound, c.oid) FROM '^FOR VALUES IN \(''([RSB])''\)$') AS class
        FROM pg_partition_tree(parent) t JOIN pg_class c ON c.oid = t.relid JOIN pg_partitioned_table p ON p.partrelid = c.oid
        WHERE p.partstrat = 'r' ORDER BY 2 -- as a reader locks them: by their bounds
    LOOP
        made := made + stentor.make_partitions(target.leaf_parent, target.class, since, until);
    END LOOP;
    RETURN made;
END
$$;

-- ---- the tables ----

CREATE SCHEMA archiver_before;
ALTER TABLE archiver.notifications SET SCHEMA archiver_before;
ALTER TABLE archiver.delivery_attempts SET SCHEMA archiver_before;

CREATE TABLE archiver.notifications (
    created_at       timestamptz      NOT NULL,
    retention_class  text COLLATE "C" NOT NULL DEFAULT 'R', -- of its id
    id               text COLLATE "C" NOT NULL,
    tenant_id        text COLLATE "C" NOT NULL,
    channel          text COLLATE "C" NOT NULL CHECK (channel IN ('email', 'sms', 'whatsapp', 'push', 'inapp', 'voice', 'webhook')),
    category         text COLLATE "C" CHECK (category IN ('transactional', 'operational', 'security', 'reminder', 'marketing',
                                             'system', 'academic', 'billing', 'social', 'compliance')),
    priority         text COLLATE "C" CHECK (priority IN ('critical', 'high', 'normal', 'low')),
    status           text COLLATE "C" NOT NULL CHECK (status IN ('queued', 'scheduled', 'rendering', 'sending', 'sent', 'delivered',
                                             'opened', 'clicked', 'suppressed', 'superseded', 'failed', 'bounced', 'complained')),
    status_rank      smallint         NOT NULL,
    reason_code      text,
    reason           text,
    template         text,
    template_version text,
    locale           text,
    recipient_id     text COLLATE "C",
    address_hash     bytea,
    address          bytea,      -- packed stentor.v1.Sealed
    correlation_id   text,
    source_event_id  text,
    content_checksum bytea,
    scheduled_for    timestamptz,
    expires_at       timestamptz,
    queued_at        timestamptz,
    scheduled_at     timestamptz,
    rendered_at      timestamptz,
    sent_at          timestamptz,
    delivered_at     timestamptz,
    opened_at        timestamptz,
    clicked_at       timestamptz,
    ended_at         timestamptz, -- suppressed, superseded, failed, bounced, complained
    updated_at       timestamptz NOT NULL DEFAULT now(), -- when the row was last written; not part of the projection's value
    batch_id         text COLLATE "C",
    PRIMARY KEY (created_at, id, tenant_id, retention_class) -- with the tenant: an id forged by another tenant makes a row of its own
) PARTITION BY LIST (retention_class);
-- Not over the status as well: an index over a column that changes with every event makes each such update of any row, of a
-- batch or not, write all index entries of the row again.
CREATE INDEX notifications_batch ON archiver.notifications (batch_id) WHERE batch_id IS NOT NULL;
SELECT stentor.isolate('archiver.notifications');
CREATE TABLE archiver.notifications_record PARTITION OF archiver.notifications FOR VALUES IN ('R') PARTITION BY RANGE (created_at);
CREATE TABLE archiver.notifications_standard PARTITION OF archiver.notifications FOR VALUES IN ('S') PARTITION BY RANGE (created_at);
CREATE TABLE archiver.notifications_brief PARTITION OF archiver.notifications FOR VALUES IN ('B') PARTITION BY RANGE (created_at);

CREATE TABLE archiver.delivery_attempts (
    created_at        timestamptz      NOT NULL, -- the notification's
    retention_class   text COLLATE "C" NOT NULL DEFAULT 'R', -- the notification's
    notification_id   text COLLATE "C" NOT NULL,
    attempt_number    smallint         NOT NULL,
    id                text COLLATE "C" NOT NULL, -- dat_
    tenant_id         text COLLATE "C" NOT NULL,
    channel           text COLLATE "C" NOT NULL,
    vendor            text             NOT NULL,
    vendor_message_id text,
    outcome           text COLLATE "C" NOT NULL CHECK (outcome IN ('accepted', 'rejected_retryable', 'rejected_terminal', 'timeout',
                                              'delivered', 'bounce', 'complaint', 'opened', 'clicked', 'failed')),
    code              text,
    enhanced_code     text,
    reply             text,
    started_at        timestamptz,
    finished_at       timestamptz,
    was_unknown       boolean          NOT NULL DEFAULT false,
    PRIMARY KEY (created_at, notification_id, attempt_number, tenant_id, retention_class)
) PARTITION BY LIST (retention_class);
SELECT stentor.isolate('archiver.delivery_attempts');
CREATE TABLE archiver.delivery_attempts_record PARTITION OF archiver.delivery_attempts FOR VALUES IN ('R') PARTITION BY RANGE (created_at);
CREATE TABLE archiver.delivery_attempts_standard PARTITION OF archiver.delivery_attempts FOR VALUES IN ('S') PARTITION BY RANGE (created_at);
CREATE TABLE archiver.delivery_attempts_brief PARTITION OF archiver.delivery_attempts FOR VALUES IN ('B') PARTITION BY RANGE (created_at);

-- Rows of sealed periods. updated_at of attempts: what came since the last export.
CREATE TABLE archiver.late_notifications (LIKE archiver.notifications INCLUDING DEFAULTS INCLUDING CONSTRAINTS,
    PRIMARY KEY (created_at, id, tenant_id, retention_class));
SELECT stentor.isolate('archiver.late_notifications');
CREATE TABLE archiver.late_attempts (LIKE archiver.delivery_attempts INCLUDING DEFAULTS INCLUDING CONSTRAINTS,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (created_at, notification_id, attempt_number, tenant_id, retention_class));
SELECT stentor.isolate('archiver.late_attempts');

GRANT SELECT, INSERT, UPDATE ON archiver.notifications, archiver.delivery_attempts, archiver.late_notifications, archiver.late_attempts
    TO stentor_archiver;
GRANT SELECT ON archiver.notifications, archiver.delivery_attempts, archiver.late_notifications, archiver.late_attempts TO stentor_cli;

-- ---- what is there already ----

DO $$
DECLARE
    month_at timestamptz;
BEGIN
    FOR month_at IN SELECT DISTINCT date_trunc('month', n.created_at, 'UTC') FROM archiver_before.notifications n
                    UNION SELECT DISTINCT date_trunc('month', a.created_at, 'UTC') FROM archiver_before.delivery_attempts a LOOP
        PERFORM stentor.ensure_partitions('archiver.notifications', month_at, month_at);
        PERFORM stentor.ensure_partitions('archiver.delivery_attempts', month_at, month_at);
    END LOOP;
    -- Beyond what the archiver makes (14 times 31 days), so that none is made while a new installation starts.
    PERFORM stentor.ensure_partitions('archiver.notifications', now() - interval '1 month', now() + interval '15 months');
    PERFORM stentor.ensure_partitions('archiver.delivery_attempts', now() - interval '1 month', now() + interval '15 months');
END
$$;

INSERT INTO archiver.notifications (created_at, retention_class, id, tenant_id, channel, category, priority, status, status_rank,
    reason_code, reason, template, template_version, locale, recipient_id, address_hash, address, correlation_id, source_event_id,
    content_checksum, scheduled_for, expires_at, queued_at, scheduled_at, rendered_at, sent_at, delivered_at, opened_at, clicked_at,
    ended_at, updated_at, batch_id)
SELECT created_at, stentor.retention_class(id), id, tenant_id, channel, category, priority, status, status_rank,
    reason_code, reason, template, template_version, locale, recipient_id, address_hash, address, correlation_id, source_event_id,
    content_checksum, scheduled_for, expires_at, queued_at, scheduled_at, rendered_at, sent_at, delivered_at, opened_at, clicked_at,
    ended_at, updated_at, batch_id FROM archiver_before.notifications;
INSERT INTO archiver.delivery_attempts (created_at, retention_class, notification_id, attempt_number, id, tenant_id, channel, vendor,
    vendor_message_id, outcome, code, enhanced_code, reply, started_at, finished_at, was_unknown)
SELECT created_at, stentor.retention_class(notification_id), notification_id, attempt_number, id, tenant_id, channel, vendor,
    vendor_message_id, outcome, code, enhanced_code, reply, started_at, finished_at, was_unknown FROM archiver_before.delivery_attempts;
DROP TABLE archiver_before.notifications, archiver_before.delivery_attempts;
DROP SCHEMA archiver_before;

-- ---- a rebuild's schema has the same shape ----

-- Makes the partitions that `live` has and `rebuilt` lacks, those that are partitioned themselves first. Safe to repeat.
CREATE OR REPLACE FUNCTION stentor.copy_partitions(live name, rebuilt name) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    child record;
BEGIN
    FOR child IN
        SELECT c.relname, p.relname AS parent, pg_get_expr(c.relpartbound, c.oid) AS bound,
               CASE WHEN c.relkind = 'p' THEN ' PARTITION BY ' || pg_get_partkeydef(c.oid) ELSE '' END AS below
        FROM pg_class c JOIN pg_inherits i ON i.inhrelid = c.oid JOIN pg_class p ON p.oid = i.inhparent
        WHERE c.relnamespace = live::regnamespace AND c.relkind IN ('r', 'p')
          AND NOT EXISTS (SELECT FROM pg_class o WHERE o.relnamespace = rebuilt::regnamespace AND o.relname = c.relname)
        ORDER BY c.relkind, c.relname
    LOOP
        EXECUTE format('CREATE TABLE %I.%I PARTITION OF %I.%I %s%s', rebuilt, child.relname, rebuilt, child.parent, child.bound, child.below);
    END LOOP;
END
$$;

-- Each row of a table as its key and a digest of all columns but the ignored ones, for comparing two tables.
CREATE OR REPLACE FUNCTION stentor.digest_rows(target regclass, ignored name[]) RETURNS TABLE (key text, digest bytea)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET timezone = 'UTC'
    AS $$
DECLARE
    key_columns text;
    columns text;
BEGIN
    SELECT string_agg(quote_ident(attname), ', ' ORDER BY array_position(i.indkey::int2[], attnum)) INTO key_columns
    FROM pg_index i JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (i.indkey::int2[])
    WHERE i.indrelid = target AND i.indisprimary AND attname NOT IN ('created_at', 'retention_class'); -- both are in the id
    SELECT string_agg(quote_ident(attname), ', ' ORDER BY attname) INTO columns
    FROM pg_attribute WHERE attrelid = target AND attnum > 0 AND NOT attisdropped AND attname <> ALL (ignored);
    RETURN QUERY EXECUTE format('SELECT concat_ws('' '', %s), sha256(convert_to(ROW(%s)::text, ''UTF8'')) FROM %s',
                                key_columns, columns, target);
END
$$;

-- What a rebuild takes over as it is: older rows where that is asked for, and those of sealed periods, which never change.
CREATE FUNCTION stentor.copy_history(rebuilt name, before timestamptz) RETURNS bigint
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    source text;
    copied bigint := 0;
    rows bigint;
    sealed record;
    is_there boolean;
BEGIN
    FOREACH source IN ARRAY ARRAY['notifications', 'delivery_attempts'] LOOP
        FOR sealed IN SELECT s.class, s.starts_at, s.ends_at FROM stentor.sealed_periods s WHERE s.ends_at > before LOOP -- a restored month, say
            EXECUTE format('SELECT EXISTS (SELECT FROM archiver.%I n WHERE n.retention_class = $1 AND n.created_at >= $2 AND n.created_at < $3)',
                           source) INTO is_there USING sealed.class, sealed.starts_at, sealed.ends_at;
            IF is_there THEN
                BEGIN
                    PERFORM stentor.make_partition(
                        format('%I.%I', rebuilt, source || CASE sealed.class WHEN 'R' THEN '_record' WHEN 'S' THEN '_standard' ELSE '_brief' END)::regclass,
                        sealed.starts_at, sealed.ends_at);
                EXCEPTION WHEN invalid_object_definition THEN NULL; -- it has a table of that time
                END;
            END IF;
        END LOOP;
        EXECUTE format('INSERT INTO %I.%I SELECT * FROM archiver.%I n WHERE n.created_at < $1', rebuilt, source, source) USING before;
        GET DIAGNOSTICS rows = ROW_COUNT;
        copied := copied + rows;
        EXECUTE format('INSERT INTO %I.%I SELECT n.* FROM stentor.sealed_periods s JOIN archiver.%I n ON n.retention_class = s.class'
                       ' AND n.created_at >= greatest(s.starts_at, $1) AND n.created_at < s.ends_at', rebuilt, source, source) USING before;
    END LOOP;
    RETURN copied;
END
$$;

-- ---- readers ----

CREATE OR REPLACE FUNCTION stentor.batch_totals(of_tenant text, of_batch text, since timestamptz)
    RETURNS TABLE (status text, notifications bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT coalesce(l.status, n.status), count(*) FROM archiver.notifications n
    LEFT JOIN archiver.late_notifications l ON l.created_at = n.created_at AND l.id = n.id AND l.tenant_id = n.tenant_id
        AND l.status_rank > n.status_rank
    WHERE n.batch_id = of_batch AND n.tenant_id = of_tenant AND n.created_at >= since - interval '1 minute'
    GROUP BY 1
    $$;

CREATE OR REPLACE FUNCTION stentor.notification_seen(of_tenant text, of_created timestamptz, of_id text)
    RETURNS TABLE (status text, seen_at timestamptz)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT (array_agg(b.status ORDER BY b.status_rank DESC))[1], max(b.seen_at)
    FROM (SELECT n.status, n.status_rank, greatest(n.ended_at, n.updated_at) AS seen_at FROM archiver.notifications n
          WHERE n.created_at = of_created AND n.id = of_id AND n.tenant_id = of_tenant
          UNION ALL
          SELECT l.status, l.status_rank, greatest(l.ended_at, l.updated_at) FROM archiver.late_notifications l
          WHERE l.created_at = of_created AND l.id = of_id AND l.tenant_id = of_tenant) b
    HAVING count(*) > 0
    $$;

CREATE OR REPLACE FUNCTION stentor.audit_history(since timestamptz, until timestamptz, for_tenant text, after_created timestamptz,
                                                 after_id text, after_tenant text, at_most integer)
    RETURNS TABLE (created_at timestamptz, id text, tenant_id text, status text,
                   reached integer) -- 1 queued, 2 scheduled, 4 sent, 8 delivered, 16 opened, 32 clicked, 64 ended
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT b.created_at, b.id, b.tenant_id, (array_agg(b.status ORDER BY b.status_rank DESC))[1],
           bool_or(b.queued_at IS NOT NULL)::int + 2 * bool_or(b.scheduled_at IS NOT NULL)::int + 4 * bool_or(b.sent_at IS NOT NULL)::int
           + 8 * bool_or(b.delivered_at IS NOT NULL)::int + 16 * bool_or(b.opened_at IS NOT NULL)::int
           + 32 * bool_or(b.clicked_at IS NOT NULL)::int + 64 * bool_or(b.ended_at IS NOT NULL)::int
    FROM (SELECT n.created_at, n.id, n.tenant_id, n.status, n.status_rank, n.queued_at, n.scheduled_at, n.sent_at, n.delivered_at,
                 n.opened_at, n.clicked_at, n.ended_at FROM archiver.notifications n
          UNION ALL
          SELECT l.created_at, l.id, l.tenant_id, l.status, l.status_rank, l.queued_at, l.scheduled_at, l.sent_at, l.delivered_at,
                 l.opened_at, l.clicked_at, l.ended_at FROM archiver.late_notifications l) b
    WHERE b.created_at >= since AND b.created_at < until
      AND (b.created_at, b.id, b.tenant_id) > (after_created, after_id, after_tenant)
      AND (for_tenant IS NULL OR b.tenant_id = for_tenant)
    GROUP BY b.created_at, b.id, b.tenant_id
    ORDER BY b.created_at, b.id, b.tenant_id LIMIT at_most
    $$;

CREATE OR REPLACE FUNCTION stentor.audit_attempts(since timestamptz, until timestamptz, for_tenant text, after_created timestamptz,
                                                  after_id text, after_attempt smallint, after_tenant text, at_most integer)
    RETURNS TABLE (created_at timestamptz, notification_id text, attempt_number smallint, tenant_id text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT b.created_at, b.notification_id, b.attempt_number, b.tenant_id
    FROM (SELECT a.created_at, a.notification_id, a.attempt_number, a.tenant_id FROM archiver.delivery_attempts a
          UNION ALL
          SELECT l.created_at, l.notification_id, l.attempt_number, l.tenant_id FROM archiver.late_attempts l) b
    WHERE b.created_at >= since AND b.created_at < until
      AND (b.created_at, b.notification_id, b.attempt_number, b.tenant_id) > (after_created, after_id, after_attempt, after_tenant)
      AND (for_tenant IS NULL OR b.tenant_id = for_tenant)
    GROUP BY b.created_at, b.notification_id, b.attempt_number, b.tenant_id
    ORDER BY b.created_at, b.notification_id, b.attempt_number, b.tenant_id LIMIT at_most
    $$;

-- How far back an audit can look in history: what was made before this may be gone (null: nothing is), and is not missed.
CREATE OR REPLACE FUNCTION stentor.history_audit_since() RETURNS timestamptz
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT greatest((SELECT max(w.floor) FROM stentor.history_retention_cursor w), (SELECT max(s.ends_at) FROM stentor.sealed_periods s))
    $$;
