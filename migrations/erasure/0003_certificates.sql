-- SPDX-License-Identifier: Apache-2.0
-- Certificates of erasure: what was destroyed, where was looked, what is left. Each holds the SHA-256 of the one before it and is signed
-- (Ed25519, STENTOR_ERASURE_KEY_FILE), so none can be changed, removed or slipped in between unseen. Rows are kept.

CREATE TABLE erasure.certificates (
    number    bigint      PRIMARY KEY CHECK (number > 0),
    request   text        COLLATE "C" NOT NULL REFERENCES erasure.requests,
    kind      text        COLLATE "C" NOT NULL CHECK (kind IN ('erasure', 'final')),
    body      text        NOT NULL, -- canonical JSON: sorted keys, no blanks
    sha256    bytea       NOT NULL CHECK (sha256 = sha256(convert_to(body, 'UTF8'))),
    signature bytea       NOT NULL CHECK (length(signature) = 64),
    issued_at timestamptz NOT NULL DEFAULT now(),
    stored_as text,                 -- the object's key; null: none yet
    UNIQUE (request, kind)
);

-- The next one of the chain. false: another one came between, or there is one of this kind.
CREATE FUNCTION erasure.issue(of_number bigint, of_request text, of_kind text, of_body text, of_signature bytea, behind bytea) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    last record;
BEGIN
    LOCK TABLE erasure.certificates IN SHARE ROW EXCLUSIVE MODE;
    SELECT c.number, c.sha256 INTO last FROM erasure.certificates c ORDER BY c.number DESC LIMIT 1;
    IF coalesce(last.number, 0) + 1 <> of_number OR last.sha256 IS DISTINCT FROM behind
       OR EXISTS (SELECT FROM erasure.certificates c WHERE c.request = of_request AND c.kind = of_kind) THEN
        RETURN false;
    END IF;
    INSERT INTO erasure.certificates (number, request, kind, body, sha256, signature)
    VALUES (of_number, of_request, of_kind, of_body, sha256(convert_to(of_body, 'UTF8')), of_signature);
    RETURN true;
END
$$;

CREATE FUNCTION erasure.stored(of_number bigint, of_key text) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ UPDATE erasure.certificates c SET stored_as = of_key WHERE c.number = of_number AND c.stored_as IS NULL $$;

-- How a sealed field names its key: the key's subject, then its generation (stentor.v1.Sealed, fields 1 and 2).
CREATE FUNCTION erasure.field_of(subject bytea, generation integer) RETURNS bytea
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    out bytea := subject || '\x10'::bytea;
    rest integer := generation;
BEGIN
    WHILE rest > 127 LOOP
        out := out || set_byte('\x00'::bytea, 0, rest % 128 + 128);
        rest := rest / 128;
    END LOOP;
    RETURN out || set_byte('\x00'::bytea, 0, rest);
END
$$;

-- The fields that the destroyed keys sealed, and whether such a key is there all the same.
CREATE FUNCTION erasure.fields(of_id text) RETURNS TABLE (field bytea, key_exists boolean)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT erasure.field_of(x.subject, x.generation),
                 EXISTS (SELECT FROM keys.data_keys d WHERE d.subject = x.subject AND d.generation = x.generation AND d.wrapped IS NOT NULL)
          FROM erasure.destroyed_keys x WHERE x.request = of_id ORDER BY 1 $$;

-- Every table of ours, read whole: rows of the tenant (of a table without one: all), those with a field that a destroyed key sealed, those whose
-- key is there all the same, and those with one of the texts in clear.
CREATE FUNCTION erasure.scan(of_id text, texts text[]) RETURNS TABLE (place text, looked_at bigint, sealed bigint, readable bigint, in_clear bigint)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    r erasure.requests;
    t record;
    every bytea[];
    living bytea[];
    hit text;
    clear text;
BEGIN
    SELECT * INTO r FROM erasure.requests q WHERE q.id = of_id;
    SELECT array_agg(f.field), coalesce(array_agg(f.field) FILTER (WHERE f.key_exists), '{}') INTO every, living FROM erasure.fields(of_id) f;
    FOR t IN
        SELECT format('%I.%I', n.nspname, c.relname) AS name, b.columns,
               (SELECT a.attname FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname IN ('tenant_id', 'tenant') AND NOT a.attisdropped) AS owner
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        CROSS JOIN LATERAL (SELECT array_agg(a.attname ORDER BY a.attnum) AS columns FROM pg_attribute a
                            WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.atttypid = 'bytea'::regtype) AS b
        WHERE c.relkind = 'r' AND n.nspowner = current_user::regrole AND n.nspname NOT LIKE 'pg\_%' ORDER BY 1
    LOOP
        SELECT coalesce(string_agg(format('coalesce(position(p IN t.%I), 0) > 0', name), ' OR '), 'false') INTO hit FROM unnest(t.columns) AS name;
        SELECT coalesce(string_agg(format(' OR coalesce(position(convert_to(s, ''UTF8'') IN t.%I), 0) > 0', name), ''), '') INTO clear
        FROM unnest(t.columns) AS name;
        RETURN QUERY EXECUTE format(
            'SELECT %L, count(*), count(*) FILTER (WHERE EXISTS (SELECT FROM unnest($1) AS p WHERE %s)),'
            ' count(*) FILTER (WHERE EXISTS (SELECT FROM unnest($2) AS p WHERE %s)),'
            ' count(*) FILTER (WHERE EXISTS (SELECT FROM unnest($3) AS s WHERE position(lower(s) IN lower(t::text)) > 0%s)) FROM %s AS t WHERE %s',
            t.name, hit, hit, clear, t.name, CASE WHEN t.owner IS NULL THEN 'true' ELSE format('t.%I = $4', t.owner) END) USING coalesce(every, '{}'), living, texts, r.tenant;
    END LOOP;
END
$$;

GRANT SELECT ON erasure.certificates TO stentor_cli;
GRANT EXECUTE ON FUNCTION erasure.issue(bigint, text, text, text, bytea, bytea), erasure.stored(bigint, text), erasure.fields(text),
    erasure.scan(text, text[]) TO stentor_cli;
