-- SPDX-License-Identifier: Apache-2.0
-- What a notification came from and belongs to, and how long a vendor asked to wait. Rows of before have NULL there; so have
-- archived objects of before, which have no such columns.

ALTER TABLE archiver.notifications
    ADD COLUMN source_event_type text,
    ADD COLUMN digest_window_id text COLLATE "C", -- the digest that took it up; of a digest: its own
    ADD COLUMN copy_of text COLLATE "C";          -- of a guardian's copy: the original
ALTER TABLE archiver.late_notifications
    ADD COLUMN source_event_type text,
    ADD COLUMN digest_window_id text COLLATE "C",
    ADD COLUMN copy_of text COLLATE "C";
ALTER TABLE archiver.delivery_attempts ADD COLUMN retry_after_ms integer;
ALTER TABLE archiver.late_attempts ADD COLUMN retry_after_ms integer;

-- Few rows have these, so the indexes cost the others nothing.
CREATE INDEX notifications_digest ON archiver.notifications (digest_window_id) WHERE digest_window_id IS NOT NULL;
CREATE INDEX notifications_copy ON archiver.notifications (copy_of) WHERE copy_of IS NOT NULL;
