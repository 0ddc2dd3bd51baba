-- SPDX-License-Identifier: Apache-2.0
-- How far the sending again of a failed mail has come, so that none is on record that never happened: its event is stored
-- (published_at), then its letter is deleted (resent_at); or the letter was gone before anything was published (gone_at): somebody
-- else had sent it again, or dropped it.

ALTER TABLE ingest.resends ADD COLUMN published_at timestamptz, ADD COLUMN gone_at timestamptz;
UPDATE ingest.resends SET published_at = resent_at;
