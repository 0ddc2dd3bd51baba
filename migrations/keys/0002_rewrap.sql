-- SPDX-License-Identifier: Apache-2.0
-- Rotation of the master key: ingest wraps again, by the current master key, the data keys that another one has wrapped.

-- The head of a key that the current master key wraps: form 1, kind 1, its id. Null: none is registered.
CREATE FUNCTION keys.current_wrapper() RETURNS bytea
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$ SELECT '\x0101'::bytea || key_id FROM keys.master_keys WHERE kind = 'master' AND retired_at IS NULL
          ORDER BY current_at DESC, key_id LIMIT 1 $$;

-- The next keys to wrap again; none when `wrapper` is not the current one: a process with an older file has nothing to do.
CREATE FUNCTION keys.to_rewrap(wrapper bytea, at_most integer)
    RETURNS TABLE (tenant_id text, subject bytea, generation integer, wrapped bytea)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    -- The index in order, and no more of it than wanted, whatever the planner believes about what is left.
    PERFORM set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true);
    RETURN QUERY SELECT * FROM (
        (SELECT d.tenant_id, d.subject, d.generation, d.wrapped FROM keys.data_keys d
         WHERE d.wrapped IS NOT NULL AND (CASE WHEN length(d.wrapped) <> 60 THEN substr(d.wrapped, 1, 6) END) < $1 LIMIT $2)
        UNION ALL
        (SELECT d.tenant_id, d.subject, d.generation, d.wrapped FROM keys.data_keys d
         WHERE d.wrapped IS NOT NULL AND (CASE WHEN length(d.wrapped) <> 60 THEN substr(d.wrapped, 1, 6) END) > $1 LIMIT $2)
        UNION ALL
        (SELECT d.tenant_id, d.subject, d.generation, d.wrapped FROM keys.data_keys d
         WHERE d.wrapped IS NOT NULL AND (CASE WHEN length(d.wrapped) <> 60 THEN substr(d.wrapped, 1, 6) END) IS NULL LIMIT $2)) AS w
    WHERE $1 = keys.current_wrapper() LIMIT least($2, 1000);
END
$$;

-- Replaces exactly the old form by the new one, so any number of processes may do it at once, and an erasure in between stays one.
-- What the current key has wrapped already is never written over: outside of a rotation this writes nothing, whoever calls it.
CREATE FUNCTION keys.rewrap(subjects bytea[], generations integer[], old bytea[], new bytea[]) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    current_head constant bytea := keys.current_wrapper();
    done integer;
BEGIN
    UPDATE keys.data_keys d SET wrapped = i.new
    FROM (SELECT * FROM unnest($1, $2, $3, $4) AS i (subject, generation, old, new) ORDER BY subject, generation) AS i
    WHERE d.subject = i.subject AND d.generation = i.generation AND d.wrapped = i.old
      AND length(i.new) = 66 AND substr(i.new, 1, 6) = current_head
      AND (CASE WHEN length(i.old) <> 60 THEN substr(i.old, 1, 6) END) IS DISTINCT FROM current_head;
    GET DIAGNOSTICS done = ROW_COUNT;
    RETURN done;
END
$$;

-- How many data keys each wrapping key has wrapped; null: the first form.
CREATE FUNCTION keys.count_wrapped() RETURNS TABLE (wrapper bytea, data_keys bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT (CASE WHEN length(d.wrapped) <> 60 THEN substr(d.wrapped, 1, 6) END), count(*) FROM keys.data_keys d
          WHERE d.wrapped IS NOT NULL GROUP BY 1 $$;

GRANT EXECUTE ON FUNCTION keys.to_rewrap(bytea, integer), keys.rewrap(bytea[], integer[], bytea[], bytea[]) TO stentor_ingest;
GRANT EXECUTE ON FUNCTION keys.count_wrapped() TO stentor_cli;
