-- SPDX-License-Identifier: Apache-2.0
-- Limits that all dispatchers share: of each key (a vendor's credential, and the same for a day) the time up to which its
-- tokens are given away (GCRA). A lease moves it on by n tokens at once; a vendor that throttles lowers the pace for all.
-- One row a key, updated in place; besides these one row for each dispatcher ("replica|<instance>"), by which they count
-- each other. Nothing in it is of a recipient.

CREATE TABLE dispatcher.budget (
    key           text COLLATE "C" PRIMARY KEY CHECK (length(key) BETWEEN 1 AND 200),
    tat           timestamptz NOT NULL, -- "theoretical arrival time": the next token is not given before it
    penalty       real        NOT NULL DEFAULT 1 CHECK (penalty > 0 AND penalty <= 1), -- at penalty_until; +0.05 each 10 s after
    penalty_until timestamptz           -- until then nothing is given; NULL: it was never throttled
) WITH (fillfactor = 50);

-- What part of its limit a key may use now.
CREATE FUNCTION dispatcher.budget_pace(penalty real, penalty_until timestamptz) RETURNS double precision
    LANGUAGE sql STABLE
    AS $$ SELECT least(1, penalty + 0.05 * floor(extract(epoch FROM greatest(now() - coalesce(penalty_until, now()), interval '0')) / 10))::double precision $$;

GRANT SELECT, INSERT, UPDATE, DELETE ON dispatcher.budget TO stentor_dispatcher;
GRANT SELECT ON dispatcher.budget TO stentor_cli;
REVOKE EXECUTE ON FUNCTION dispatcher.budget_pace(real, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION dispatcher.budget_pace(real, timestamptz) TO stentor_dispatcher;
