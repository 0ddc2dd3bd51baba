-- SPDX-License-Identifier: Apache-2.0
-- Holds are put and released by a person at the command line, who is named; rows stay.

CREATE FUNCTION erasure.set_hold(of_tenant text, of_subject bytea, of_unit text, of_ground text, by_whom text, ends_at timestamptz) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    made bigint;
BEGIN
    IF of_unit IS NOT NULL AND NOT EXISTS (SELECT FROM archive.units u WHERE u.id = of_unit) THEN
        RAISE EXCEPTION 'there is no unit ''%''', of_unit;
    END IF;
    INSERT INTO archive.holds (tenant, subject, unit, ground, held_by, until)
    VALUES (of_tenant, of_subject, of_unit, of_ground, by_whom, ends_at) RETURNING id INTO made;
    PERFORM archive.record('hold set', of_unit, jsonb_build_object('hold', made, 'by', by_whom));
    RETURN made;
END
$$;

-- false: there is no such hold that is not released.
CREATE FUNCTION erasure.release_hold(of_id bigint, by_whom text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    UPDATE archive.holds h SET released_at = now(), released_by = by_whom WHERE h.id = of_id AND h.released_at IS NULL;
    IF FOUND THEN
        PERFORM archive.record('hold released', NULL, jsonb_build_object('hold', of_id, 'by', by_whom));
    END IF;
    RETURN FOUND;
END
$$;

GRANT EXECUTE ON FUNCTION erasure.set_hold(text, bytea, text, text, text, timestamptz), erasure.release_hold(bigint, text) TO stentor_cli;
