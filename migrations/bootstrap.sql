-- SPDX-License-Identifier: Apache-2.0
-- What only a superuser may make, once for a database: the roles, and who may connect. `stentor migrate --bootstrap` runs it with
-- hand_over.sql in one transaction; so does `psql -1 -f migrations/bootstrap.sql -f migrations/hand_over.sql -d stentor`.
-- Safe to repeat; a release that adds a role asks for it again. Passwords are set by the deployment.

SET LOCAL search_path = pg_catalog, pg_temp;

DO $$
DECLARE
    service text;
    services constant text[] := ARRAY['stentor_ingest', 'stentor_gateway', 'stentor_renderer', 'stentor_dispatcher',
                                      'stentor_webhook', 'stentor_webhook_receiver', 'stentor_digest_flusher', 'stentor_archiver', 'stentor_order_saga', 'stentor_cli'];
    wrong text;
BEGIN
    FOREACH service IN ARRAY array_append(services, 'stentor_owner') LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = service) THEN
            EXECUTE format('CREATE ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS', service);
        END IF;
    END LOOP;

    -- Reported and not repaired: whoever changed the role so may have had access to the server.
    SELECT format('role ''%s'' %s: find out since when and why, end it with %s', r.rolname, w.what, w.remedy) INTO wrong
    FROM pg_roles r,
         LATERAL (SELECT 'is a superuser' AS what, format('ALTER ROLE %I NOSUPERUSER', r.rolname) AS remedy WHERE r.rolsuper
                  UNION ALL
                  SELECT 'may bypass row-level security', format('ALTER ROLE %I NOBYPASSRLS', r.rolname) WHERE r.rolbypassrls
                  UNION ALL
                  SELECT 'may make roles or databases, or replicate',
                         format('ALTER ROLE %I NOCREATEROLE NOCREATEDB NOREPLICATION', r.rolname)
                  WHERE r.rolcreaterole OR r.rolcreatedb OR r.rolreplication
                  UNION ALL
                  SELECT format('is a member of ''%s''', m.roleid::regrole), format('REVOKE %s FROM %I', m.roleid::regrole, r.rolname)
                  FROM pg_auth_members m WHERE m.member = r.oid) AS w
    WHERE r.rolname = ANY (array_append(services, 'stentor_owner')) ORDER BY r.rolname, w.what LIMIT 1;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION '%', wrong;
    END IF;

    EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
    FOREACH service IN ARRAY services LOOP
        EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), service);
    END LOOP;
    -- CREATE for the schemas, TEMPORARY for `stentor rebuild --dry-run`. It does not own the database: an owner may also change
    -- settings that superusers' sessions inherit.
    EXECUTE format('GRANT CONNECT, CREATE, TEMPORARY ON DATABASE %I TO stentor_owner', current_database());
    IF to_regnamespace('public') IS NOT NULL THEN
        REVOKE CREATE ON SCHEMA public FROM PUBLIC;
    END IF;
END
$$;

-- Every statement of these roles is a look-up by key. A partition or table that was analysed while it was small would be scanned by
-- plans that are kept while it grows. Here and in no migration: stentor_owner may not change another role.
ALTER ROLE stentor_dispatcher SET enable_seqscan = off;
ALTER ROLE stentor_webhook SET enable_seqscan = off;
ALTER ROLE stentor_digest_flusher SET enable_seqscan = off;
ALTER ROLE stentor_order_saga SET enable_seqscan = off;
