-- SPDX-License-Identifier: Apache-2.0
-- Record keys: data keys of what a law may oblige the sender to keep (common/codec/hash.h). An erasure under such a duty destroys a person's other
-- keys at once, and these when the duty has ended.

ALTER TABLE erasure.requests
    ADD COLUMN records bytea[] NOT NULL DEFAULT '{}',      -- of the subjects, those of record keys
    ADD COLUMN final   boolean NOT NULL DEFAULT false;     -- no duty keeps a key

-- Record keys that outlive the erasure, because a duty keeps what they seal. In keys.data_keys such a key is restricted, so that no service
-- opens by it, and a destroyed generation stands above it, so that whoever is here again gets a new one.
CREATE TABLE erasure.kept_keys (
    subject      bytea       NOT NULL CHECK (length(subject) = 16),
    generation   integer     NOT NULL,
    request      text        COLLATE "C" NOT NULL REFERENCES erasure.requests,
    duty         text        NOT NULL CHECK (duty <> ''),
    until        timestamptz NOT NULL,
    ended_at     timestamptz,                                     -- destroyed
    ended_by     text        COLLATE "C" REFERENCES erasure.requests, -- this request, or a later one that is final
    announced_at timestamptz,                                     -- AUDIT has the end
    PRIMARY KEY (subject, generation),
    CHECK ((ended_at IS NULL) = (ended_by IS NULL)),
    CHECK (announced_at IS NULL OR ended_at IS NOT NULL)
);
CREATE INDEX kept_keys_request ON erasure.kept_keys (request);

CREATE FUNCTION erasure.is_kept(of_subject bytea, of_generation integer) RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RETURN EXISTS (SELECT FROM erasure.kept_keys k WHERE k.subject = of_subject AND k.generation = of_generation AND k.ended_at IS NULL);
END
$$;

DROP FUNCTION erasure.ask(text, text, text, bytea[], bytea[], text, text, text);
-- Notes a request. Answers with its id and state; with those of an earlier one that is not finished, or that left nothing to erase. No row:
-- nothing is known of this person.
CREATE FUNCTION erasure.ask(of_id text, of_tenant text, of_recipient text, of_subjects bytea[], of_hashes bytea[], of_ground text, by_whom text,
                            of_event text, of_records bytea[], is_final boolean) RETURNS TABLE (request text, is_state text, at timestamptz)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    found record;
    known boolean;
BEGIN
    LOCK TABLE erasure.requests IN SHARE ROW EXCLUSIVE MODE;
    known := EXISTS (SELECT FROM keys.data_keys d WHERE d.tenant_id = of_tenant AND d.subject = ANY (of_subjects) AND d.wrapped IS NOT NULL
                     AND NOT erasure.is_kept(d.subject, d.generation))
             OR EXISTS (SELECT FROM people.recipients p WHERE p.tenant_id = of_tenant AND p.recipient_id = of_recipient);
    SELECT q.id, q.state, q.requested_at INTO found FROM erasure.requests q
    WHERE q.id = of_id
       OR (q.tenant = of_tenant AND (q.announced_at IS NULL OR NOT known) AND (q.recipient_id = of_recipient OR q.subjects && of_subjects))
    ORDER BY q.id = of_id DESC, q.requested_at DESC LIMIT 1;
    IF found.id IS NULL AND known THEN
        INSERT INTO erasure.requests AS q (id, tenant, recipient_id, subjects, records, address_hashes, ground, requested_by, source_event)
        VALUES (of_id, of_tenant, of_recipient, of_subjects, of_records, of_hashes, of_ground, by_whom, of_event)
        RETURNING q.id, q.state, q.requested_at INTO found;
    END IF;
    IF is_final THEN
        UPDATE erasure.requests q SET final = true WHERE q.id = found.id;
    END IF;
    IF found.id IS NOT NULL THEN
        RETURN QUERY SELECT found.id, found.state, found.requested_at;
    END IF;
END
$$;

-- The record keys that exist, from now on for readers of what is kept only.
CREATE FUNCTION erasure.keep(r erasure.requests, of_duty text, keep_until timestamptz) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    INSERT INTO erasure.kept_keys (subject, generation, request, duty, until)
    SELECT d.subject, d.generation, r.id, of_duty, keep_until FROM keys.data_keys d
    WHERE d.tenant_id = r.tenant AND d.subject = ANY (r.records) AND d.wrapped IS NOT NULL ON CONFLICT DO NOTHING;
    UPDATE keys.data_keys d SET restricted_by = coalesce(d.restricted_by, r.id) FROM erasure.kept_keys k
    WHERE k.request = r.id AND d.subject = k.subject AND d.generation = k.generation;
    INSERT INTO keys.data_keys (tenant_id, subject, generation, destroyed_at)
    SELECT r.tenant, k.subject, k.generation + 1, now() FROM erasure.kept_keys k WHERE k.request = r.id ORDER BY 2 ON CONFLICT DO NOTHING;
END
$$;

-- Every key of the person that is not kept.
CREATE OR REPLACE FUNCTION erasure.destroy(r erasure.requests) RETURNS bigint
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    destroyed bigint;
    at timestamptz := clock_timestamp(); -- now() may be before the wait for the lock (0006_keyless.sql)
BEGIN
    INSERT INTO erasure.destroyed_keys
    SELECT d.subject, d.generation, r.id, CASE WHEN length(d.wrapped) <> 60 THEN substr(d.wrapped, 1, 6) END, sha256(d.wrapped), d.created_at, at
    FROM keys.data_keys d WHERE d.tenant_id = r.tenant AND d.subject = ANY (r.subjects) AND d.wrapped IS NOT NULL
      AND NOT erasure.is_kept(d.subject, d.generation);
    GET DIAGNOSTICS destroyed = ROW_COUNT;
    UPDATE keys.data_keys d SET wrapped = NULL, destroyed_at = coalesce(d.destroyed_at, at), restricted_by = NULL
    WHERE d.tenant_id = r.tenant AND d.subject = ANY (r.subjects) AND (d.wrapped IS NOT NULL OR d.restricted_by IS NOT NULL)
      AND NOT erasure.is_kept(d.subject, d.generation);
    RETURN destroyed;
END
$$;

-- Kept keys that end now, whatever holds say. A final erasure by an address reaches what an earlier one of the recipient kept, and the reverse.
CREATE FUNCTION erasure.ends(r erasure.requests) RETURNS SETOF erasure.kept_keys
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RETURN QUERY SELECT k.* FROM erasure.kept_keys k JOIN erasure.requests q ON q.id = k.request
        WHERE k.ended_at IS NULL AND r.state = 'erased'
          AND CASE WHEN r.final THEN q.tenant = r.tenant AND q.subjects && r.subjects ELSE q.id = r.id AND k.until <= now() END;
END
$$;

-- Destroys the kept keys whose duty has ended, or all of a person whose erasure is final; not under a hold. Answers with the time of what AUDIT
-- does not have yet; null: nothing.
CREATE FUNCTION erasure.end_records(of_id text) RETURNS timestamptz
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    r erasure.requests;
    at timestamptz;
BEGIN
    SELECT * INTO r FROM erasure.requests q WHERE q.id = of_id AND q.state = 'erased' FOR UPDATE;
    IF EXISTS (SELECT FROM erasure.ends(r)) AND erasure.hold_of(r) IS NULL THEN
        PERFORM set_config('lock_timeout', '5s', true);
        LOCK TABLE keys.data_keys IN SHARE ROW EXCLUSIVE MODE;
        at := clock_timestamp();
        INSERT INTO erasure.destroyed_keys
        SELECT d.subject, d.generation, k.request, CASE WHEN length(d.wrapped) <> 60 THEN substr(d.wrapped, 1, 6) END, sha256(d.wrapped),
               d.created_at, at
        FROM erasure.ends(r) k JOIN keys.data_keys d ON d.subject = k.subject AND d.generation = k.generation
        WHERE d.wrapped IS NOT NULL ON CONFLICT DO NOTHING;
        UPDATE keys.data_keys d SET wrapped = NULL, destroyed_at = at, restricted_by = NULL FROM erasure.ends(r) k
        WHERE d.subject = k.subject AND d.generation = k.generation AND d.wrapped IS NOT NULL;
        UPDATE erasure.kept_keys x SET ended_at = at, ended_by = r.id FROM erasure.ends(r) k
        WHERE x.subject = k.subject AND x.generation = k.generation;
    END IF;
    RETURN (SELECT max(k.ended_at) FROM erasure.kept_keys k WHERE k.ended_by = of_id AND k.announced_at IS NULL);
END
$$;

DROP FUNCTION erasure.execute(text);
-- Erases, or restricts under a hold. Answers with the state. No key is made while it runs, so none is missed. With a duty the record keys are kept,
-- for this long from the end of the period.
CREATE FUNCTION erasure.execute(of_id text, of_duty text, of_kept interval, of_period text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    r erasure.requests;
    held bigint;
    done jsonb;
    kept bigint;
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
    kept := (SELECT count(*) FROM erasure.hashes_of(r.tenant, r.recipient_id) h WHERE h.is_kept AND h.address_hash <> ALL (r.address_hashes));
    IF held IS NULL THEN
        done := done || erasure.clear_people(r);
    END IF;
    LOCK TABLE keys.data_keys IN SHARE ROW EXCLUSIVE MODE;
    IF held IS NOT NULL THEN
        PERFORM erasure.restrict(r);
        UPDATE erasure.requests q SET state = 'restricted', hold = held, restricted_at = coalesce(q.restricted_at, now()) WHERE q.id = r.id;
        RETURN 'restricted';
    END IF;
    IF of_duty IS NOT NULL AND NOT r.final THEN
        PERFORM erasure.keep(r, of_duty, (date_trunc(of_period, now() AT TIME ZONE 'UTC') + ('1 ' || of_period)::interval + of_kept) AT TIME ZONE 'UTC');
    END IF;
    done := done || jsonb_build_object('keys.data_keys', erasure.destroy(r), 'addresses_kept', kept);
    UPDATE erasure.requests q SET state = 'erased', erased_at = now(), cleared = done WHERE q.id = r.id;
    RETURN 'erased';
END
$$;

CREATE FUNCTION erasure.announced_end(of_id text) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ UPDATE erasure.kept_keys k SET announced_at = now() WHERE k.ended_by = of_id AND k.announced_at IS NULL $$;

-- What is to be gone on with: not executed, executed and not announced, restricted by a hold that has ended, with kept keys whose duty has ended.
CREATE OR REPLACE FUNCTION erasure.open_requests() RETURNS SETOF erasure.requests
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT q.* FROM erasure.requests q
          WHERE (q.announced_at IS NULL AND (q.state <> 'restricted' OR erasure.hold_of(q) IS NULL))
             OR EXISTS (SELECT FROM erasure.kept_keys k WHERE k.ended_by = q.id AND k.announced_at IS NULL)
             OR (EXISTS (SELECT FROM erasure.ends(q)) AND erasure.hold_of(q) IS NULL) ORDER BY q.requested_at $$;

-- What was kept waits since the end of its duty.
CREATE OR REPLACE FUNCTION erasure.waiting() RETURNS TABLE (erasures bigint, oldest_s double precision)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT count(*), coalesce(extract(epoch FROM now() - min(CASE WHEN q.announced_at IS NULL THEN q.requested_at ELSE coalesce(
              (SELECT min(k.until) FROM erasure.kept_keys k WHERE k.request = q.id AND k.announced_at IS NULL AND k.until <= now()), now()) END)),
              0)::double precision FROM erasure.open_requests() q $$;

-- ---- again in a restored database ----

-- "<subject in hex>:<generation>", separated by commas.
CREATE FUNCTION erasure.pairs(keys text) RETURNS TABLE (subject bytea, generation integer)
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RETURN QUERY SELECT decode(split_part(pair, ':', 1), 'hex'), split_part(pair, ':', 2)::integer FROM unnest(string_to_array(keys, ',')) AS pair;
END
$$;

-- Whether one of these keys is there.
CREATE FUNCTION erasure.lives(keys text) RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RETURN EXISTS (SELECT FROM erasure.pairs(keys) g JOIN keys.data_keys d ON d.subject = g.subject AND d.generation = g.generation
                   WHERE d.wrapped IS NOT NULL);
END
$$;

-- Keys that a duty kept then, kept again.
CREATE FUNCTION erasure.replay_kept(of_id text, kept text, of_duty text, keep_until timestamptz) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    INSERT INTO erasure.kept_keys (subject, generation, request, duty, until)
    SELECT g.subject, g.generation, of_id, of_duty, keep_until FROM erasure.pairs(kept) g JOIN keys.data_keys d USING (subject, generation)
    WHERE d.wrapped IS NOT NULL ON CONFLICT DO NOTHING;
    UPDATE keys.data_keys d SET restricted_by = of_id FROM erasure.kept_keys k
    WHERE k.request = of_id AND k.ended_at IS NULL AND d.subject = k.subject AND d.generation = k.generation AND d.restricted_by IS NULL;
    INSERT INTO keys.data_keys (tenant_id, subject, generation, destroyed_at)
    SELECT q.tenant, k.subject, k.generation + 1, now() FROM erasure.kept_keys k JOIN erasure.requests q ON q.id = k.request
    WHERE k.request = of_id ON CONFLICT DO NOTHING;
END
$$;

DROP FUNCTION erasure.replay(text, text, text, text, text, text, timestamptz);
-- What was destroyed then, and what a duty kept. Younger generations are of a person who came back. false: this database has it.
CREATE FUNCTION erasure.replay(of_id text, of_tenant text, of_recipient text, destroyed text, of_ground text, by_whom text, at timestamptz,
                               kept text, of_duty text, keep_until timestamptz)
    RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    r erasure.requests;
    done jsonb;
    again boolean; -- the keys alone: a restored database knew the request, and not the end of what it kept
    gone bytea[];
    records bytea[];
    upto integer[];
    destroyed_again timestamptz;
BEGIN
    again := EXISTS (SELECT FROM erasure.requests q WHERE q.id = of_id AND q.state = 'erased');
    IF again AND NOT erasure.lives(destroyed) THEN
        RETURN false;
    END IF;
    SELECT coalesce(array_agg(g.subject), '{}'), coalesce(array_agg(g.generation), '{}') INTO gone, upto FROM erasure.pairs(destroyed) g;
    SELECT coalesce(array_agg(g.subject), '{}') INTO records FROM erasure.pairs(kept) g;
    INSERT INTO erasure.requests AS q (id, tenant, recipient_id, subjects, records, address_hashes, ground, requested_by, requested_at, state,
                                       erased_at, announced_at)
    VALUES (of_id, of_tenant, of_recipient, gone || records, records, '{}', of_ground, by_whom, at, 'erased', at, now())
    ON CONFLICT (id) DO UPDATE SET state = 'erased', erased_at = coalesce(q.erased_at, excluded.erased_at),
                                   announced_at = coalesce(q.announced_at, excluded.announced_at)
    RETURNING * INTO r;
    IF NOT again THEN
        done := erasure.stop_sends(r);
    END IF;
    IF NOT again AND EXISTS (SELECT FROM people.recipients p WHERE p.tenant_id = of_tenant AND p.recipient_id = of_recipient AND p.updated_at <= at) THEN
        done := done || erasure.clear_people(r);
    END IF;
    PERFORM set_config('lock_timeout', '5s', true);
    LOCK TABLE keys.data_keys IN SHARE ROW EXCLUSIVE MODE;
    destroyed_again := clock_timestamp();
    UPDATE erasure.kept_keys k SET ended_at = at, ended_by = of_id, announced_at = now()
    FROM unnest(gone, upto) AS g (subject, generation) WHERE k.subject = g.subject AND k.generation = g.generation AND k.ended_at IS NULL;
    INSERT INTO erasure.destroyed_keys
    SELECT d.subject, d.generation, of_id, CASE WHEN length(d.wrapped) <> 60 THEN substr(d.wrapped, 1, 6) END, sha256(d.wrapped), d.created_at,
           destroyed_again
    FROM unnest(gone, upto) AS g (subject, generation) JOIN keys.data_keys d ON d.subject = g.subject AND d.generation <= g.generation
    WHERE d.tenant_id = of_tenant AND d.wrapped IS NOT NULL AND NOT erasure.is_kept(d.subject, d.generation) ON CONFLICT DO NOTHING;
    INSERT INTO erasure.destroyed_keys
    SELECT g.subject, g.generation, of_id, NULL, NULL, at, at FROM unnest(gone, upto) AS g (subject, generation) ON CONFLICT DO NOTHING;
    UPDATE keys.data_keys d SET wrapped = NULL, destroyed_at = destroyed_again, restricted_by = NULL
    FROM unnest(gone, upto) AS g (subject, generation)
    WHERE d.tenant_id = of_tenant AND d.subject = g.subject AND d.generation <= g.generation AND d.wrapped IS NOT NULL
      AND NOT erasure.is_kept(d.subject, d.generation);
    -- The next key of this subject is a younger one than those that were.
    INSERT INTO keys.data_keys (tenant_id, subject, generation, destroyed_at)
    SELECT of_tenant, g.subject, g.generation, at FROM unnest(gone, upto) AS g (subject, generation) ON CONFLICT DO NOTHING;
    PERFORM erasure.replay_kept(of_id, kept, of_duty, keep_until);
    IF NOT again THEN
        UPDATE erasure.requests q SET cleared = done WHERE q.id = of_id;
    END IF;
    RETURN true;
END
$$;

DROP FUNCTION erasure.missing(text[]);
-- How many of these erasures are not done here, or with a key that they destroyed and that is there again.
CREATE FUNCTION erasure.missing(ids text[], destroyed text[]) RETURNS bigint
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT count(DISTINCT i.id) FROM unnest(ids, destroyed) AS i (id, keys)
          WHERE NOT EXISTS (SELECT FROM erasure.requests q WHERE q.id = i.id AND q.state = 'erased') OR erasure.lives(i.keys) $$;

GRANT SELECT ON erasure.kept_keys TO stentor_cli;
GRANT EXECUTE ON FUNCTION erasure.ask(text, text, text, bytea[], bytea[], text, text, text, bytea[], boolean),
    erasure.execute(text, text, interval, text), erasure.end_records(text), erasure.announced_end(text),
    erasure.replay(text, text, text, text, text, text, timestamptz, text, text, timestamptz), erasure.missing(text[], text[]) TO stentor_cli;
