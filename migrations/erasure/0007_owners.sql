-- SPDX-License-Identifier: Apache-2.0
-- Whose an address was, and when: data that was sent to an address is sealed under the address's own key, and the record of the recipient names
-- an address only for as long as the recipient has it. Rows are kept: without them another recipient would be given what was sent before.

CREATE TABLE erasure.address_owners (
    tenant       text COLLATE "C" NOT NULL,
    recipient_id text COLLATE "C" NOT NULL,
    address_hash bytea            NOT NULL,
    since        timestamptz      NOT NULL, -- '-infinity': before these rows were kept
    until        timestamptz,               -- null: the recipient has it
    ended_in     xid8,                      -- the transaction that ended it: a record's addresses are deleted and inserted as a whole
    PRIMARY KEY (recipient_id, tenant, address_hash, since)
);
CREATE INDEX address_owners_hash ON erasure.address_owners (address_hash, tenant);

INSERT INTO erasure.address_owners (tenant, recipient_id, address_hash, since)
SELECT DISTINCT a.tenant_id, a.recipient_id, a.address_hash, timestamptz '-infinity' FROM people.addresses a;

-- The times are the record's, so that a fold that is late ends with the same rows; of a record that is deleted, now.
CREATE FUNCTION erasure.note_addresses_gone() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    UPDATE erasure.address_owners o SET ended_in = pg_current_xact_id(), until = coalesce(
        (SELECT p.updated_at FROM people.recipients p WHERE p.recipient_id = o.recipient_id AND p.tenant_id = o.tenant AND p.updated_at > o.since),
        greatest(o.since, now()))
    FROM gone g WHERE o.recipient_id = g.recipient_id AND o.tenant = g.tenant_id AND o.address_hash = g.address_hash AND o.until IS NULL;
    RETURN NULL;
END
$$;

CREATE FUNCTION erasure.note_addresses_come() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    UPDATE erasure.address_owners o SET until = NULL, ended_in = NULL
    FROM come c WHERE o.recipient_id = c.recipient_id AND o.tenant = c.tenant_id AND o.address_hash = c.address_hash
                  AND o.ended_in = pg_current_xact_id();
    INSERT INTO erasure.address_owners (tenant, recipient_id, address_hash, since)
    SELECT DISTINCT c.tenant_id, c.recipient_id, c.address_hash, coalesce(p.updated_at, now())
    FROM come c LEFT JOIN people.recipients p ON p.recipient_id = c.recipient_id AND p.tenant_id = c.tenant_id
    WHERE NOT EXISTS (SELECT FROM erasure.address_owners o WHERE o.recipient_id = c.recipient_id AND o.tenant = c.tenant_id
                                                             AND o.address_hash = c.address_hash AND o.until IS NULL)
    ON CONFLICT (recipient_id, tenant, address_hash, since) DO UPDATE SET until = NULL, ended_in = NULL;
    RETURN NULL;
END
$$;

CREATE TRIGGER address_owners_gone AFTER DELETE ON people.addresses REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION erasure.note_addresses_gone();
CREATE TRIGGER address_owners_come AFTER INSERT ON people.addresses REFERENCING NEW TABLE AS come
    FOR EACH STATEMENT EXECUTE FUNCTION erasure.note_addresses_come();

-- Hashes of the addresses that this recipient has, and had since their last erasure. An address's key goes with the recipient who had it last
-- (is_kept: that is another): by the key, what it sealed for the earlier ones is not different from what it sealed for the last one.
CREATE FUNCTION erasure.hashes_of(of_tenant text, of_recipient text) RETURNS TABLE (address_hash bytea, is_kept boolean)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    WITH erased AS (
        SELECT coalesce(max(q.erased_at), '-infinity') AS at FROM erasure.requests q WHERE q.tenant = of_tenant AND q.recipient_id = of_recipient),
    had AS (
        SELECT a.address_hash, timestamptz 'infinity' AS until FROM people.addresses a WHERE a.tenant_id = of_tenant AND a.recipient_id = of_recipient
        UNION ALL
        SELECT o.address_hash, coalesce(o.until, 'infinity') FROM erasure.address_owners o, erased e
        WHERE o.tenant = of_tenant AND o.recipient_id = of_recipient AND (o.until IS NULL OR o.until > e.at)),
    last AS (SELECT h.address_hash, max(h.until) AS until FROM had h GROUP BY 1)
    SELECT l.address_hash, EXISTS (SELECT FROM erasure.address_owners o WHERE o.address_hash = l.address_hash AND o.tenant = of_tenant
                                   AND o.recipient_id <> of_recipient AND coalesce(o.until, 'infinity') > l.until)
    FROM last l ORDER BY 1 $$;

-- Whether what was sent to an address alone at that time is this recipient's ('': of no recipient). While one or several had the address: theirs.
-- Before the first of them: the first one's. After the end of one and before the next one: of no recipient.
CREATE FUNCTION erasure.was_of(of_tenant text, of_recipient text, of_hash bytea, at timestamptz) RETURNS boolean
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    WITH owners AS (
        SELECT o.since, o.recipient_id = of_recipient AS is_mine, o.since <= at AND (o.until IS NULL OR at < o.until) AS covers
        FROM erasure.address_owners o WHERE o.address_hash = of_hash AND o.tenant = of_tenant)
    SELECT CASE WHEN bool_or(covers) THEN bool_or(covers AND is_mine)
                WHEN of_recipient = '' THEN true
                ELSE count(*) = 0 OR (at < min(since) AND coalesce(min(since) FILTER (WHERE is_mine) = min(since), false)) END FROM owners $$;

-- Erases, or restricts under a hold. Answers with the state. No key is made while it runs, so none is missed.
CREATE OR REPLACE FUNCTION erasure.execute(of_id text) RETURNS text
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
    done := done || jsonb_build_object('keys.data_keys', erasure.destroy(r), 'addresses_kept', kept);
    UPDATE erasure.requests q SET state = 'erased', erased_at = now(), cleared = done WHERE q.id = r.id;
    RETURN 'erased';
END
$$;

GRANT SELECT ON erasure.address_owners TO stentor_cli;
GRANT EXECUTE ON FUNCTION erasure.hashes_of(text, text), erasure.was_of(text, text, bytea, timestamptz) TO stentor_cli;
