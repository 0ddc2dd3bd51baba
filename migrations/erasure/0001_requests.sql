-- SPDX-License-Identifier: Apache-2.0
-- Erasure of a person's data: who was to be erased and why, and the digest of each key that was destroyed. No address and no name is here:
-- hashes and ids only. Rows are kept: they are the proof. Shared by cli and ingest; read across tenants, so the column is `tenant` and
-- there is no policy.
-- A request moves waiting -> erased, or waiting -> restricted (a hold keeps the data: no program uses the person's keys) -> erased. Then it is
-- announced (PEOPLE, AUDIT). Each step is one transaction and may be repeated.

CREATE SCHEMA erasure;

CREATE TABLE erasure.requests (
    id             text COLLATE "C" PRIMARY KEY,  -- era_
    tenant         text COLLATE "C" NOT NULL,
    recipient_id   text COLLATE "C",              -- null: an address that belongs to no recipient
    subjects       bytea[]          NOT NULL CHECK (cardinality(subjects) > 0), -- whose data keys are destroyed
    address_hashes bytea[]          NOT NULL,
    ground         text             NOT NULL CHECK (ground <> ''),
    requested_by   text             NOT NULL CHECK (requested_by <> ''),
    source_event   text COLLATE "C",              -- the domain event that asked for it
    asked_as       name             NOT NULL DEFAULT session_user,
    requested_at   timestamptz      NOT NULL DEFAULT now(),
    state          text COLLATE "C" NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'restricted', 'erased')),
    hold           bigint           REFERENCES archive.holds, -- the last one that was in its way
    restricted_at  timestamptz,
    erased_at      timestamptz,
    cleared        jsonb            NOT NULL DEFAULT '{}', -- rows by table
    announced_at   timestamptz,
    CHECK ((state = 'erased') = (erased_at IS NOT NULL)),
    CHECK (announced_at IS NULL OR erased_at IS NOT NULL),
    CHECK (state <> 'restricted' OR (hold IS NOT NULL AND restricted_at IS NOT NULL))
);
CREATE INDEX requests_open ON erasure.requests (requested_at) WHERE announced_at IS NULL;

CREATE TABLE erasure.destroyed_keys (
    subject        bytea       NOT NULL CHECK (length(subject) = 16),
    generation     integer     NOT NULL,
    request        text        COLLATE "C" NOT NULL REFERENCES erasure.requests,
    wrapper        bytea,                -- form, kind and id of the wrapping key; null: the first form, which does not say
    wrapped_sha256 bytea,                -- of the bytes that were destroyed; null: done again after a restore, and there was no such key
    made_at        timestamptz NOT NULL,
    destroyed_at   timestamptz NOT NULL,
    PRIMARY KEY (subject, generation)
);
CREATE INDEX destroyed_keys_request ON erasure.destroyed_keys (request);

-- The hold that keeps this person's data; null: none. Of a unit: when the unit has rows of the person, or, where they are in object storage
-- only, rows of the tenant.
CREATE FUNCTION erasure.hold_of(r erasure.requests) RETURNS bigint
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RETURN (
        SELECT min(h.id) FROM archive.holds h
        WHERE h.released_at IS NULL AND (h.until IS NULL OR h.until > now()) AND (h.tenant IS NULL OR h.tenant = r.tenant)
          AND (h.subject IS NULL OR h.subject = ANY (r.subjects))
          AND (h.unit IS NULL
               OR EXISTS (SELECT FROM archive.objects o WHERE o.unit = h.unit AND o.tenant = r.tenant AND o.state <> 'deleted')
               OR EXISTS (SELECT FROM archive.units u JOIN archiver.notifications n ON n.created_at >= u.starts_at AND n.created_at < u.ends_at
                          WHERE u.id = h.unit AND n.tenant_id = r.tenant
                            AND (n.recipient_id = r.recipient_id OR n.address_hash = ANY (r.address_hashes)))));
END
$$;

-- Notes a request. Answers with its id and state; with those of an earlier one that is not finished, or that left nothing to erase. No row:
-- nothing is known of this person.
CREATE FUNCTION erasure.ask(of_id text, of_tenant text, of_recipient text, of_subjects bytea[], of_hashes bytea[], of_ground text, by_whom text,
                            of_event text) RETURNS TABLE (request text, is_state text, at timestamptz)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    found record;
    known boolean;
BEGIN
    LOCK TABLE erasure.requests IN SHARE ROW EXCLUSIVE MODE;
    known := EXISTS (SELECT FROM keys.data_keys d WHERE d.tenant_id = of_tenant AND d.subject = ANY (of_subjects) AND d.wrapped IS NOT NULL)
             OR EXISTS (SELECT FROM people.recipients p WHERE p.tenant_id = of_tenant AND p.recipient_id = of_recipient);
    SELECT q.id, q.state, q.requested_at INTO found FROM erasure.requests q
    WHERE q.id = of_id
       OR (q.tenant = of_tenant AND (q.announced_at IS NULL OR NOT known) AND (q.recipient_id = of_recipient OR q.subjects && of_subjects))
    ORDER BY q.id = of_id DESC, q.requested_at DESC LIMIT 1;
    IF found.id IS NULL AND known THEN
        INSERT INTO erasure.requests AS q (id, tenant, recipient_id, subjects, address_hashes, ground, requested_by, source_event)
        VALUES (of_id, of_tenant, of_recipient, of_subjects, of_hashes, of_ground, by_whom, of_event)
        RETURNING q.id, q.state, q.requested_at INTO found;
    END IF;
    IF found.id IS NOT NULL THEN
        RETURN QUERY SELECT found.id, found.state, found.requested_at;
    END IF;
END
$$;

-- What waits for its time is not sent any more: it ends as suppressed, at once. What another process has claimed is left to its stage, which finds
-- no key. Answers how many rows of each table.
CREATE FUNCTION erasure.stop_sends(r erasure.requests) RETURNS jsonb
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    waiting bigint;
    items bigint;
BEGIN
    UPDATE digest_flusher.due_work w SET status = 'suppressed', reason_code = 'recipient_erased', due_at = now()
    WHERE w.tenant_id = r.tenant AND w.status IS NULL AND w.claimed_until IS NULL AND w.subject LIKE 'ntf.request.%'
      AND (w.recipient_id = r.recipient_id OR EXISTS (SELECT FROM unnest(r.subjects) AS s WHERE position(s IN w.payload) > 0));
    GET DIAGNOSTICS waiting = ROW_COUNT;
    WITH locked AS MATERIALIZED (
        SELECT w.tenant_id, w.window_id FROM digest_flusher.digest_windows w
        WHERE w.tenant_id = r.tenant AND w.recipient_id = r.recipient_id AND w.state = 'open' ORDER BY w.window_id FOR UPDATE),
    gone AS MATERIALIZED (
        SELECT i.* FROM locked l JOIN digest_flusher.digest_items i ON i.tenant_id = l.tenant_id AND i.window_id = l.window_id
        WHERE i.payload IS NOT NULL),
    emptied AS (
        UPDATE digest_flusher.digest_items i SET payload = NULL FROM gone g
        WHERE i.tenant_id = g.tenant_id AND i.window_id = g.window_id AND i.notification_id = g.notification_id)
    INSERT INTO digest_flusher.due_work (work_id, tenant_id, notification_id, reason, due_at, subject, event_id, payload, status, reason_code)
    SELECT g.work_id, g.tenant_id, g.notification_id, 'digest', now(), g.subject, g.event_id, g.payload, 'suppressed', 'recipient_erased' FROM gone g
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS items = ROW_COUNT;
    RETURN jsonb_build_object('digest_flusher.due_work', waiting, 'digest_flusher.digest_items', items);
END
$$;

-- The person's record and wishes; what PEOPLE says of them later (the removal) finds nothing more.
CREATE FUNCTION erasure.clear_people(r erasure.requests) RETURNS jsonb
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    place text;
    gone bigint;
    cleared jsonb := '{}';
BEGIN
    FOREACH place IN ARRAY ARRAY['people.recipients', 'people.addresses', 'people.preferences', 'people.consents', 'digest_flusher.preferences',
                                 'digest_flusher.consents'] LOOP
        EXECUTE format('DELETE FROM %s WHERE tenant_id = $1 AND recipient_id = $2', place) USING r.tenant, r.recipient_id;
        GET DIAGNOSTICS gone = ROW_COUNT;
        cleared := cleared || jsonb_build_object(place, gone);
    END LOOP;
    RETURN cleared;
END
$$;

-- No program uses the person's keys from now on, nor makes one: a subject without a key gets a row that says so.
CREATE FUNCTION erasure.restrict(r erasure.requests) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    INSERT INTO keys.data_keys (tenant_id, subject, generation, destroyed_at)
    SELECT r.tenant, s, 1, now() FROM unnest(r.subjects) AS s
    WHERE NOT EXISTS (SELECT FROM keys.data_keys d WHERE d.subject = s) ORDER BY s;
    UPDATE keys.data_keys d SET restricted_by = r.id WHERE d.tenant_id = r.tenant AND d.subject = ANY (r.subjects) AND d.restricted_by IS NULL;
END
$$;

CREATE FUNCTION erasure.destroy(r erasure.requests) RETURNS bigint
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    destroyed bigint;
BEGIN
    INSERT INTO erasure.destroyed_keys
    SELECT d.subject, d.generation, r.id, CASE WHEN length(d.wrapped) <> 60 THEN substr(d.wrapped, 1, 6) END, sha256(d.wrapped), d.created_at, now()
    FROM keys.data_keys d WHERE d.tenant_id = r.tenant AND d.subject = ANY (r.subjects) AND d.wrapped IS NOT NULL;
    GET DIAGNOSTICS destroyed = ROW_COUNT;
    UPDATE keys.data_keys d SET wrapped = NULL, destroyed_at = coalesce(d.destroyed_at, now()), restricted_by = NULL
    WHERE d.tenant_id = r.tenant AND d.subject = ANY (r.subjects) AND (d.wrapped IS NOT NULL OR d.restricted_by IS NOT NULL);
    RETURN destroyed;
END
$$;

-- Erases, or restricts under a hold. Answers with the state. No key is made while it runs, so none is missed.
CREATE FUNCTION erasure.execute(of_id text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    r erasure.requests;
    held bigint;
    done jsonb;
BEGIN
    SELECT * INTO r FROM erasure.requests q WHERE q.id = of_id FOR UPDATE;
    IF r.id IS NULL THEN
        RAISE EXCEPTION 'there is no erasure ''%''', of_id;
    ELSIF r.state = 'erased' THEN
        RETURN r.state;
    END IF;
    PERFORM set_config('lock_timeout', '5s', true);
    LOCK TABLE archive.holds IN SHARE MODE; -- one that is set now comes before this erasure or after it
    held := erasure.hold_of(r);
    done := erasure.stop_sends(r);
    IF held IS NULL THEN
        done := done || erasure.clear_people(r);
    END IF;
    LOCK TABLE keys.data_keys IN SHARE ROW EXCLUSIVE MODE;
    IF held IS NOT NULL THEN
        PERFORM erasure.restrict(r);
        UPDATE erasure.requests q SET state = 'restricted', hold = held, restricted_at = coalesce(q.restricted_at, now()) WHERE q.id = r.id;
        RETURN 'restricted';
    END IF;
    done := done || jsonb_build_object('keys.data_keys', erasure.destroy(r));
    UPDATE erasure.requests q SET state = 'erased', erased_at = now(), cleared = done WHERE q.id = r.id;
    RETURN 'erased';
END
$$;

CREATE FUNCTION erasure.announced(of_id text) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ UPDATE erasure.requests q SET announced_at = now() WHERE q.id = of_id AND q.state = 'erased' AND q.announced_at IS NULL $$;

-- What is to be gone on with: not executed, executed and not announced, restricted by a hold that has ended.
CREATE FUNCTION erasure.open_requests() RETURNS SETOF erasure.requests
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT q.* FROM erasure.requests q
          WHERE q.announced_at IS NULL AND (q.state <> 'restricted' OR erasure.hold_of(q) IS NULL) ORDER BY q.requested_at LIMIT 100 $$;

GRANT USAGE ON SCHEMA erasure TO stentor_cli;
GRANT SELECT ON erasure.requests, erasure.destroyed_keys TO stentor_cli;
GRANT EXECUTE ON FUNCTION erasure.ask(text, text, text, bytea[], bytea[], text, text, text), erasure.execute(text), erasure.announced(text),
    erasure.open_requests() TO stentor_cli;
