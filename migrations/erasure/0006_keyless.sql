-- SPDX-License-Identifier: Apache-2.0
-- What a restore showed: an erasure may have destroyed no key, and the time of a destruction is that of the statement.

-- Empty: a record without a key, done again after a restore.
ALTER TABLE erasure.requests DROP CONSTRAINT requests_subjects_check;

-- Called under the lock on keys.data_keys. now() is the begin of the transaction, which may have waited for that lock: an epoch that was opened
-- meanwhile would count as opened after the destruction, and the final certificate would not wait for its end.
CREATE OR REPLACE FUNCTION erasure.destroy(r erasure.requests) RETURNS bigint
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    destroyed bigint;
    at timestamptz := clock_timestamp();
BEGIN
    INSERT INTO erasure.destroyed_keys
    SELECT d.subject, d.generation, r.id, CASE WHEN length(d.wrapped) <> 60 THEN substr(d.wrapped, 1, 6) END, sha256(d.wrapped), d.created_at, at
    FROM keys.data_keys d WHERE d.tenant_id = r.tenant AND d.subject = ANY (r.subjects) AND d.wrapped IS NOT NULL;
    GET DIAGNOSTICS destroyed = ROW_COUNT;
    UPDATE keys.data_keys d SET wrapped = NULL, destroyed_at = coalesce(d.destroyed_at, at), restricted_by = NULL
    WHERE d.tenant_id = r.tenant AND d.subject = ANY (r.subjects) AND (d.wrapped IS NOT NULL OR d.restricted_by IS NOT NULL);
    RETURN destroyed;
END
$$;

-- keys: "<subject in hex>:<generation>", separated by commas: what was destroyed then; empty: none was there. Younger generations are of a person
-- who came back. false: this database has it.
CREATE OR REPLACE FUNCTION erasure.replay(of_id text, of_tenant text, of_recipient text, destroyed text, of_ground text, by_whom text,
                                          at timestamptz) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    r erasure.requests;
    done jsonb;
    gone bytea[];
    upto integer[];
    again timestamptz;
BEGIN
    IF EXISTS (SELECT FROM erasure.requests q WHERE q.id = of_id AND q.state = 'erased') THEN
        RETURN false;
    END IF;
    SELECT coalesce(array_agg(decode(split_part(pair, ':', 1), 'hex')), '{}'), coalesce(array_agg(split_part(pair, ':', 2)::integer), '{}')
    INTO gone, upto FROM unnest(string_to_array(destroyed, ',')) AS pair;
    INSERT INTO erasure.requests AS q (id, tenant, recipient_id, subjects, address_hashes, ground, requested_by, requested_at, state, erased_at,
                                       announced_at)
    VALUES (of_id, of_tenant, of_recipient, gone, '{}', of_ground, by_whom, at, 'erased', at, now())
    ON CONFLICT (id) DO UPDATE SET state = 'erased', erased_at = excluded.erased_at, announced_at = excluded.announced_at
    RETURNING * INTO r;
    done := erasure.stop_sends(r);
    IF EXISTS (SELECT FROM people.recipients p WHERE p.tenant_id = of_tenant AND p.recipient_id = of_recipient AND p.updated_at <= at) THEN
        done := done || erasure.clear_people(r);
    END IF;
    PERFORM set_config('lock_timeout', '5s', true);
    LOCK TABLE keys.data_keys IN SHARE ROW EXCLUSIVE MODE;
    again := clock_timestamp();
    INSERT INTO erasure.destroyed_keys
    SELECT d.subject, d.generation, of_id, CASE WHEN length(d.wrapped) <> 60 THEN substr(d.wrapped, 1, 6) END, sha256(d.wrapped), d.created_at, again
    FROM unnest(gone, upto) AS g (subject, generation) JOIN keys.data_keys d ON d.subject = g.subject AND d.generation <= g.generation
    WHERE d.tenant_id = of_tenant AND d.wrapped IS NOT NULL ON CONFLICT DO NOTHING;
    INSERT INTO erasure.destroyed_keys
    SELECT g.subject, g.generation, of_id, NULL, NULL, at, at FROM unnest(gone, upto) AS g (subject, generation) ON CONFLICT DO NOTHING;
    UPDATE keys.data_keys d SET wrapped = NULL, destroyed_at = again, restricted_by = NULL
    FROM unnest(gone, upto) AS g (subject, generation)
    WHERE d.tenant_id = of_tenant AND d.subject = g.subject AND d.generation <= g.generation AND d.wrapped IS NOT NULL;
    -- The next key of this subject is a younger one than those that were.
    INSERT INTO keys.data_keys (tenant_id, subject, generation, destroyed_at)
    SELECT of_tenant, g.subject, g.generation, at FROM unnest(gone, upto) AS g (subject, generation) ON CONFLICT DO NOTHING;
    UPDATE erasure.requests q SET cleared = done WHERE q.id = of_id;
    RETURN true;
END
$$;
