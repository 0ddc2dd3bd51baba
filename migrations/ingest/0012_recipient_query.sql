-- SPDX-License-Identifier: Apache-2.0
-- A batch whose members are chosen among the tenant's recipients when it starts: what they must be, and how far the choice has come.

ALTER TABLE ingest.batches
    ADD COLUMN recipient_query jsonb,            -- services/ingest/batches/recipient_query.h; null: the members are uploaded
    ADD COLUMN chosen_after    text COLLATE "C", -- the last recipient that was looked at; null: none yet
    ADD COLUMN is_chosen       boolean NOT NULL DEFAULT false, -- all were looked at
    ADD CHECK (recipient_query IS NOT NULL OR (chosen_after IS NULL AND NOT is_chosen));
