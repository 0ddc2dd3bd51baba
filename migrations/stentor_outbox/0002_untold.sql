-- SPDX-License-Identifier: Apache-2.0
-- Letters whose fate is known and whose row could not be written at that moment: the application held its lock, or its
-- table refused the change.
CREATE TABLE stentor_outbox.untold (
    mapping text COLLATE "C" NOT NULL,
    row_key text COLLATE "C" NOT NULL,
    attempt integer          NOT NULL, -- of the letter
    at      timestamptz      NOT NULL, -- when it happened
    tries   integer          NOT NULL DEFAULT 0, -- that its table has refused
    next_at timestamptz      NOT NULL DEFAULT now(),
    PRIMARY KEY (mapping, row_key, attempt)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
