-- SPDX-License-Identifier: Apache-2.0
-- What is in object storage, and how it got there. Units (kind, class, period) move through states; each move is one UPDATE that names the
-- state it comes from and the owner's epoch, so a process that is no owner any more moves nothing. Shared by archiver and cli.
-- No row of a tenant is here, only tenants' names, counts and hashes: the catalogue is read across tenants, so its column is `tenant` and
-- it has no policy.

CREATE SCHEMA archive;
CREATE SCHEMA archive_drop;    -- tables that were detached and wait for their DROP; nothing is granted on them
CREATE SCHEMA archive_restore; -- tables that are being filled from object storage, not attached yet

-- One row: whose the bucket is. owner.json in the bucket bears the same id, epoch and token. A fork or a restored backup has an older
-- epoch or another token: it changes nothing in the bucket.
CREATE TABLE archive.installation (
    single           boolean     PRIMARY KEY DEFAULT true CHECK (single),
    id               uuid        NOT NULL DEFAULT gen_random_uuid(),
    owner_epoch      bigint      NOT NULL DEFAULT 0 CHECK (owner_epoch >= 0),
    token            uuid,                 -- of this epoch
    previous_token   uuid,                 -- of the one before: the bucket may still have it, when the process died between the two
    owner_changed_at timestamptz NOT NULL DEFAULT now(), -- when this database took the bucket from another one, or first took it
    storage          text,                 -- the URL without keys
    conditions       boolean,              -- whether the server holds If-None-Match and If-Match
    standing_still   text,                 -- why this database does not own the bucket; null: it does
    clock_fault      text,                 -- why nothing is deleted: clocks disagree; null: they agree
    folded_at        timestamptz,          -- all events stored before this time are in history
    seen_at          timestamptz,          -- when the archive's process last reported
    audited          bigint      NOT NULL DEFAULT 0 -- up to this row of the journal restores and expiries have their entries in AUDIT
);
INSERT INTO archive.installation DEFAULT VALUES;

-- Which tables belong to a kind of unit. `parent` is partitioned by class and by time_column.
CREATE TABLE archive.kinds (
    kind        text     COLLATE "C" NOT NULL,
    ordinal     smallint NOT NULL,
    parent      text     NOT NULL, -- schema.table
    late        text     NOT NULL, -- rows of sealed units: same columns
    time_column name     NOT NULL,
    id_column   name     NOT NULL, -- with the time, the order of the export
    skipped     name[]   NOT NULL, -- columns that are no part of the value
    PRIMARY KEY (kind, ordinal),
    UNIQUE (parent)
);
INSERT INTO archive.kinds VALUES
    ('notifications', 0, 'archiver.notifications', 'archiver.late_notifications', 'created_at', 'id', '{updated_at}'),
    ('notifications', 1, 'archiver.delivery_attempts', 'archiver.late_attempts', 'created_at', 'notification_id', '{updated_at}');

-- A unit is sealed when its row's state is not 'open': from that commit on, its rows never change, and events for it go to the late tables.
CREATE TABLE archive.units (
    id            text        COLLATE "C" PRIMARY KEY, -- notifications/record/2026-10
    kind          text        COLLATE "C" NOT NULL,
    class         text        COLLATE "C" NOT NULL CHECK (class IN ('R', 'S', 'B')),
    starts_at     timestamptz NOT NULL,
    ends_at       timestamptz NOT NULL,
    state         text        COLLATE "C" NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'sealed', 'counted', 'written', 'verified',
                              'committed', 'removing', 'removed', 'restored', 'expired')),
    state_at      timestamptz NOT NULL DEFAULT now(),
    owner_epoch   bigint      NOT NULL,           -- of the owner; a new owner writes its own into every row
    generation    integer     NOT NULL DEFAULT 0, -- of its manifest
    manifest_key  text,
    manifest_hash bytea       CHECK (length(manifest_hash) = 32),
    checked_at    timestamptz,                    -- when the rows in Postgres were last counted again and were as counted
    heads_at      timestamptz,                    -- when all its objects were last seen in the bucket
    detached      text[],                         -- its tables' names in archive_drop, by ordinal
    removed_at    timestamptz,                    -- when it was detached: the grace counts from here
    late_at       timestamptz,                    -- late rows written before this are in objects
    finished_at   timestamptz,                    -- expired: when the last object was deleted
    failed_at     timestamptz,                    -- the last failure; null: the last step went well
    failure       text,
    failures      bigint      NOT NULL DEFAULT 0,
    CHECK (starts_at < ends_at),
    UNIQUE (kind, class, starts_at)
);

-- What the unit holds, counted in Postgres in one snapshot after it was sealed.
CREATE TABLE archive.counts (
    unit        text        COLLATE "C" NOT NULL REFERENCES archive.units,
    ordinal     smallint    NOT NULL,
    tenant      text        COLLATE "C" NOT NULL,
    rows        bigint      NOT NULL CHECK (rows > 0),
    min_created timestamptz NOT NULL,
    max_created timestamptz NOT NULL,
    min_id      text        COLLATE "C" NOT NULL,
    max_id      text        COLLATE "C" NOT NULL,
    digest      numeric     NOT NULL, -- sum of Postgres's own hash of each row
    columns     name[]      NOT NULL, -- over which
    PRIMARY KEY (unit, ordinal, tenant)
);

CREATE TABLE archive.objects (
    key          text        COLLATE "C" PRIMARY KEY,
    unit         text        COLLATE "C" NOT NULL REFERENCES archive.units,
    kind         text        COLLATE "C" NOT NULL CHECK (kind IN ('part', 'late')),
    ordinal      smallint    NOT NULL,
    tenant       text        COLLATE "C" NOT NULL,
    part         integer     NOT NULL CHECK (part >= 0),
    rows         bigint      NOT NULL CHECK (rows > 0),
    bytes        bigint      NOT NULL CHECK (bytes > 0),
    sha256       bytea       NOT NULL CHECK (length(sha256) = 32),
    row_sum      bytea       NOT NULL CHECK (length(row_sum) = 32), -- sum of the SHA-256 of each row's canonical text, mod 2^256
    digest       numeric,                  -- as in archive.counts, of the rows as they were read back from the bucket
    columns      name[]      NOT NULL,     -- over which
    min_created  timestamptz NOT NULL,
    max_created  timestamptz NOT NULL,
    min_id       text        COLLATE "C" NOT NULL,
    max_id       text        COLLATE "C" NOT NULL,
    format       integer     NOT NULL,
    tier         text        COLLATE "C" NOT NULL CHECK (tier IN ('warm', 'cold')),
    version      text,                     -- of the object, where the bucket keeps versions
    state        text        COLLATE "C" NOT NULL CHECK (state IN ('written', 'verified', 'replaced', 'deleted')),
    written_at   timestamptz NOT NULL DEFAULT now(),
    verified_at  timestamptz,
    head_at      timestamptz,              -- when HEAD last showed it, with its size
    delete_after timestamptz,              -- of a replaced one
    deleted_at   timestamptz,
    CHECK (state <> 'verified' OR verified_at IS NOT NULL AND digest IS NOT NULL)
);
CREATE INDEX objects_unit ON archive.objects (unit, ordinal, tenant, part);

CREATE TABLE archive.requests (
    id           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind         text        COLLATE "C" NOT NULL CHECK (kind IN ('run', 'verify', 'restore', 'expire', 'delete-orphans', 'adopt')),
    argument     jsonb       NOT NULL,
    requested_by name        NOT NULL,
    requested_at timestamptz NOT NULL DEFAULT now(),
    state        text        COLLATE "C" NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'running', 'done', 'failed')),
    started_at   timestamptz,
    ended_at     timestamptz,
    step         text,                       -- what is being done now, and to which unit
    step_at      timestamptz,                -- since when; rows and bytes are this step's
    rows_done    bigint      NOT NULL DEFAULT 0,
    rows_total   bigint      NOT NULL DEFAULT 0,
    bytes_done   bigint      NOT NULL DEFAULT 0,
    bytes_total  bigint      NOT NULL DEFAULT 0,
    message      text                        -- the outcome, or why it failed
);
CREATE INDEX requests_waiting ON archive.requests (id) WHERE state IN ('waiting', 'running');

CREATE TABLE archive.restores (
    unit        text        COLLATE "C" PRIMARY KEY REFERENCES archive.units,
    request     bigint      REFERENCES archive.requests,
    until       timestamptz NOT NULL,
    started_at  timestamptz NOT NULL DEFAULT now(),
    checked_at  timestamptz,                 -- its tables are filled, closed, and as counted
    attached_at timestamptz
);

-- What must not be deleted: a unit, a tenant's rows, or those of one recipient (subject: the keyed hash that names their data key).
CREATE TABLE archive.holds (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant      text        COLLATE "C",
    subject     bytea       CHECK (length(subject) = 16),
    unit        text        COLLATE "C" REFERENCES archive.units,
    ground      text        NOT NULL CHECK (ground <> ''),
    held_by     text        NOT NULL CHECK (held_by <> ''),
    held_at     timestamptz NOT NULL DEFAULT now(),
    until       timestamptz,                 -- null: until it is released
    released_at timestamptz,
    released_by text,
    CHECK (tenant IS NOT NULL OR unit IS NOT NULL),
    CHECK (subject IS NULL OR tenant IS NOT NULL)
);

-- Every change of a state and every deletion, append-only. hash = SHA-256 of the previous row's hash and this row's text.
CREATE TABLE archive.journal (
    id       bigint      PRIMARY KEY,
    at       timestamptz NOT NULL,
    what     text        COLLATE "C" NOT NULL,
    unit     text        COLLATE "C",
    detail   jsonb       NOT NULL,
    previous bytea       NOT NULL CHECK (length(previous) = 32),
    hash     bytea       NOT NULL CHECK (length(hash) = 32)
);

CREATE FUNCTION archive.journal_hash(previous bytea, id bigint, at timestamptz, what text, unit text, detail jsonb) RETURNS bytea
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$ SELECT sha256(previous || convert_to(concat_ws(E'\n', id, (extract(epoch FROM at) * 1000000)::bigint, what, coalesce(unit, ''),
                                                         detail::text), 'UTF8')) $$;

CREATE FUNCTION archive.record(what text, unit text, detail jsonb) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    last record;
    number bigint;
    happened timestamptz := clock_timestamp();
BEGIN
    LOCK TABLE archive.journal IN SHARE ROW EXCLUSIVE MODE;
    SELECT j.id, j.hash INTO last FROM archive.journal j ORDER BY j.id DESC LIMIT 1;
    number := coalesce(last.id, 0) + 1;
    last.hash := coalesce(last.hash, decode(repeat('00', 32), 'hex'));
    INSERT INTO archive.journal VALUES (number, happened, what, unit, detail, last.hash,
                                        archive.journal_hash(last.hash, number, happened, what, unit, detail));
END
$$;

-- Why the clocks may not be trusted with a deletion; null: they may. The journal has it once a day, and so has AUDIT.
CREATE FUNCTION archive.note_clocks(fault text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    UPDATE archive.installation SET clock_fault = fault WHERE clock_fault IS DISTINCT FROM fault;
    IF fault IS NOT NULL AND NOT EXISTS (SELECT FROM archive.journal j WHERE j.what = 'clocks disagree'
                                         AND j.at BETWEEN now() - interval '20 hours' AND now()) THEN
        PERFORM archive.record('clocks disagree', NULL, jsonb_build_object('fault', fault));
    END IF;
END
$$;

-- The first row whose hash does not follow from it and from the row before; null: the chain is whole.
CREATE FUNCTION archive.journal_fault() RETURNS bigint
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT min(c.id) FROM (
        SELECT j.*, coalesce(lag(j.hash) OVER w, decode(repeat('00', 32), 'hex')) AS before, coalesce(lag(j.id) OVER w, 0) AS id_before
        FROM archive.journal j WINDOW w AS (ORDER BY j.id)) c
    WHERE c.previous <> c.before OR c.id <> c.id_before + 1
       OR c.hash <> archive.journal_hash(c.previous, c.id, c.at, c.what, c.unit, c.detail)
    $$;

-- Why the unit's objects may not be deleted; null: they may.
CREATE FUNCTION archive.held(of_unit text) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT format('hold %s of %s: %s', h.id, h.held_by, h.ground) FROM archive.holds h
    WHERE h.released_at IS NULL AND (h.until IS NULL OR h.until > now())
      AND (h.unit = of_unit OR (h.unit IS NULL AND EXISTS (SELECT FROM archive.objects o WHERE o.unit = of_unit AND o.tenant = h.tenant)))
    ORDER BY h.id LIMIT 1
    $$;

-- The same table as unit_state.c. Only definer functions of the owner set the states that say where the rows are.
CREATE FUNCTION archive.on_unit_moved() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    owner name := (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = 'archive.units'::regclass);
    hold text;
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NOT pg_has_role(current_user, owner, 'USAGE')
           AND (NEW.state <> 'open' OR NEW.owner_epoch <> (SELECT i.owner_epoch FROM archive.installation i)) THEN
            RAISE EXCEPTION 'unit ''%'' begins as open and under this epoch', NEW.id USING ERRCODE = 'insufficient_privilege';
        END IF;
        RETURN NEW;
    ELSIF NEW.state = OLD.state THEN
        RETURN NEW;
    END IF;
    IF (OLD.state, NEW.state) NOT IN (('open', 'sealed'), ('sealed', 'counted'), ('counted', 'written'), ('written', 'verified'),
                                      ('verified', 'committed'), ('committed', 'removing'), ('removing', 'removed'), ('removed', 'restored'),
                                      ('restored', 'removed'), ('removed', 'expired')) THEN
        RAISE EXCEPTION 'unit ''%'' cannot become % from %', NEW.id, NEW.state, OLD.state USING ERRCODE = 'check_violation';
    ELSIF NEW.state IN ('removing', 'removed', 'restored') AND current_user <> owner THEN
        RAISE EXCEPTION 'unit ''%'' becomes % by its function only', NEW.id, NEW.state USING ERRCODE = 'insufficient_privilege';
    ELSIF NEW.owner_epoch <> (SELECT i.owner_epoch FROM archive.installation i) THEN
        RAISE EXCEPTION 'unit ''%'' belongs to another epoch', NEW.id USING ERRCODE = 'check_violation';
    ELSIF NEW.state = 'expired' THEN
        hold := archive.held(NEW.id);
        IF hold IS NOT NULL THEN
            RAISE EXCEPTION 'unit ''%'' is kept by %', NEW.id, hold USING ERRCODE = 'check_violation';
        END IF;
    END IF;
    NEW.state_at := now();
    PERFORM archive.record('unit ' || NEW.state, NEW.id, jsonb_build_object('from', OLD.state, 'epoch', NEW.owner_epoch));
    RETURN NEW;
END
$$;
CREATE TRIGGER units_moved BEFORE INSERT OR UPDATE OF state ON archive.units FOR EACH ROW EXECUTE FUNCTION archive.on_unit_moved();

-- Asks the archive's process for work; it answers in the row. At most 100 wait at once.
CREATE FUNCTION archive.request(of_kind text, of_argument jsonb) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    made bigint;
BEGIN
    LOCK TABLE archive.requests IN SHARE ROW EXCLUSIVE MODE;
    IF (SELECT count(*) FROM archive.requests r WHERE r.state = 'waiting') >= 100 THEN
        RAISE EXCEPTION 'archive.request: 100 requests wait already; does stentor-archiver run?';
    ELSIF length(of_argument::text) > 4096 THEN
        RAISE EXCEPTION 'archive.request: the argument is longer than 4096 characters';
    END IF;
    INSERT INTO archive.requests (kind, argument, requested_by) VALUES (of_kind, of_argument, session_user) RETURNING id INTO made;
    NOTIFY stentor_archive;
    RETURN made;
END
$$;

-- Requests that ended 90 days ago: how many there were.
CREATE FUNCTION archive.prune_requests() RETURNS bigint
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    WITH gone AS (DELETE FROM archive.requests r WHERE r.state IN ('done', 'failed') AND r.ended_at < now() - interval '90 days'
                  AND NOT EXISTS (SELECT FROM archive.restores s WHERE s.request = r.id) RETURNING 1)
    SELECT count(*) FROM gone
    $$;

GRANT USAGE ON SCHEMA archive TO stentor_archiver, stentor_cli;
GRANT USAGE ON SCHEMA archive_restore TO stentor_archiver;
GRANT SELECT ON archive.installation, archive.kinds, archive.units, archive.counts, archive.objects, archive.requests, archive.restores,
    archive.holds, archive.journal TO stentor_archiver, stentor_cli;
GRANT UPDATE ON archive.installation TO stentor_archiver;
GRANT INSERT, UPDATE ON archive.units, archive.counts, archive.objects TO stentor_archiver;
GRANT UPDATE ON archive.requests TO stentor_archiver;
GRANT INSERT, UPDATE, DELETE ON archive.restores TO stentor_archiver;
GRANT EXECUTE ON FUNCTION archive.record(text, text, jsonb), archive.journal_hash(bytea, bigint, timestamptz, text, text, jsonb),
    archive.on_unit_moved(), archive.note_clocks(text), archive.prune_requests() TO stentor_archiver;
GRANT EXECUTE ON FUNCTION archive.held(text), archive.journal_fault() TO stentor_archiver, stentor_cli;
GRANT EXECUTE ON FUNCTION archive.journal_hash(bytea, bigint, timestamptz, text, text, jsonb), archive.request(text, jsonb) TO stentor_cli;
