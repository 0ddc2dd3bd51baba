-- SPDX-License-Identifier: Apache-2.0
-- After a restore this database is older than the erasures that were done since. AUDIT and the certificates' objects know them: they are done again
-- here, before a service works (keys.gate).

-- keys: "<subject in hex>:<generation>", separated by commas: what was destroyed then. Younger generations are of a person who came back. false:
-- this database has it.
CREATE FUNCTION erasure.replay(of_id text, of_tenant text, of_recipient text, destroyed text, of_ground text, by_whom text, at timestamptz)
    RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    r erasure.requests;
    done jsonb;
    gone bytea[];
    upto integer[];
BEGIN
    IF EXISTS (SELECT FROM erasure.requests q WHERE q.id = of_id AND q.state = 'erased') THEN
        RETURN false;
    END IF;
    SELECT array_agg(decode(split_part(pair, ':', 1), 'hex')), array_agg(split_part(pair, ':', 2)::integer) INTO gone, upto
    FROM unnest(string_to_array(destroyed, ',')) AS pair;
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
    INSERT INTO erasure.destroyed_keys
    SELECT d.subject, d.generation, of_id, CASE WHEN length(d.wrapped) <> 60 THEN substr(d.wrapped, 1, 6) END, sha256(d.wrapped), d.created_at, now()
    FROM unnest(gone, upto) AS g (subject, generation) JOIN keys.data_keys d ON d.subject = g.subject AND d.generation <= g.generation
    WHERE d.tenant_id = of_tenant AND d.wrapped IS NOT NULL ON CONFLICT DO NOTHING;
    INSERT INTO erasure.destroyed_keys
    SELECT g.subject, g.generation, of_id, NULL, NULL, at, at FROM unnest(gone, upto) AS g (subject, generation) ON CONFLICT DO NOTHING;
    UPDATE keys.data_keys d SET wrapped = NULL, destroyed_at = now(), restricted_by = NULL
    FROM unnest(gone, upto) AS g (subject, generation)
    WHERE d.tenant_id = of_tenant AND d.subject = g.subject AND d.generation <= g.generation AND d.wrapped IS NOT NULL;
    -- The next key of this subject is a younger one than those that were.
    INSERT INTO keys.data_keys (tenant_id, subject, generation, destroyed_at)
    SELECT of_tenant, g.subject, g.generation, at FROM unnest(gone, upto) AS g (subject, generation) ON CONFLICT DO NOTHING;
    UPDATE erasure.requests q SET cleared = done WHERE q.id = of_id;
    RETURN true;
END
$$;

-- A certificate that an object holds and this database lost. Only the next one of the chain; its signature is checked by who reads it.
CREATE FUNCTION erasure.restore_certificate(of_number bigint, of_request text, of_kind text, of_body text, of_signature bytea, of_key text)
    RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    LOCK TABLE erasure.certificates IN SHARE ROW EXCLUSIVE MODE;
    IF of_number <> (SELECT coalesce(max(c.number), 0) + 1 FROM erasure.certificates c) THEN
        RETURN false;
    END IF;
    INSERT INTO erasure.certificates (number, request, kind, body, sha256, signature, stored_as)
    VALUES (of_number, of_request, of_kind, of_body, sha256(convert_to(of_body, 'UTF8')), of_signature, of_key);
    RETURN true;
END
$$;

-- Which of these ids are not erased here.
CREATE FUNCTION erasure.missing(ids text[]) RETURNS bigint
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT count(*) FROM unnest(ids) AS i WHERE NOT EXISTS (SELECT FROM erasure.requests q WHERE q.id = i AND q.state = 'erased') $$;

GRANT EXECUTE ON FUNCTION erasure.replay(text, text, text, text, text, text, timestamptz),
    erasure.restore_certificate(bigint, text, text, text, bytea, text), erasure.missing(text[]) TO stentor_cli;
