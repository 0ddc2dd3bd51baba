-- SPDX-License-Identifier: Apache-2.0
-- How far the domain events that ask for an erasure are read.

CREATE TABLE erasure.positions (
    stream   text   COLLATE "C" PRIMARY KEY,
    sequence bigint NOT NULL
);

CREATE FUNCTION erasure.read_until(of_stream text, of_sequence bigint) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ INSERT INTO erasure.positions AS p VALUES (of_stream, of_sequence)
          ON CONFLICT (stream) DO UPDATE SET sequence = excluded.sequence $$;

GRANT SELECT ON erasure.positions TO stentor_cli;
GRANT EXECUTE ON FUNCTION erasure.read_until(text, bigint) TO stentor_cli;
