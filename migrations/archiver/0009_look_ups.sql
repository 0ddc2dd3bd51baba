-- SPDX-License-Identifier: Apache-2.0
-- What `stentor find` asks by: a caller's or an order's correlation id, the source event, a vendor's own id of a message. Hash indexes, which
-- keep four bytes of a long text, over the rows that have such an id alone. What they cost: services/archiver/DECISIONS.md.

CREATE INDEX notifications_correlation ON archiver.notifications USING hash (correlation_id) WHERE correlation_id IS NOT NULL;
CREATE INDEX notifications_source_event ON archiver.notifications USING hash (source_event_id) WHERE source_event_id IS NOT NULL;
-- Of SMTP it is the Message-ID, which begins with the notification's id: that finds the row by its key.
CREATE INDEX attempts_vendor_message ON archiver.delivery_attempts USING hash (vendor_message_id)
    WHERE NOT starts_with(vendor_message_id COLLATE "C", notification_id || '@');
