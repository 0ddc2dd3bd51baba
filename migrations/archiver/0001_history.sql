-- SPDX-License-Identifier: Apache-2.0
-- History: one row per notification and one per attempt, in monthly partitions by the time in the notification's ULID, so
-- every event of a notification finds its row's partition without a look-up. Folded by the archiver; rows merge by the
-- status lattice and the earliest time, so events may come twice and in any order.
-- A rebuild replaces this schema as a whole: functions and tables that must outlast it are in schema stentor (0002 to 0004).

CREATE SCHEMA archiver;

CREATE TABLE archiver.notifications (
    created_at       timestamptz      NOT NULL,
    id               text COLLATE "C" NOT NULL,
    tenant_id        text COLLATE "C" NOT NULL,
    channel          text COLLATE "C" NOT NULL CHECK (channel IN ('email', 'sms', 'whatsapp', 'push', 'inapp', 'voice', 'webhook')),
    category         text COLLATE "C" CHECK (category IN ('transactional', 'operational', 'security', 'reminder', 'marketing',
                                             'system', 'academic', 'billing', 'social', 'compliance')),
    priority         text COLLATE "C" CHECK (priority IN ('critical', 'high', 'normal', 'low')),
    status           text COLLATE "C" NOT NULL CHECK (status IN ('queued', 'scheduled', 'rendering', 'sending', 'sent', 'delivered',
                                             'opened', 'clicked', 'suppressed', 'superseded', 'failed', 'bounced', 'complained')),
    status_rank      smallint         NOT NULL,
    reason_code      text,
    reason           text,
    template         text,
    template_version text,
    locale           text,
    recipient_id     text COLLATE "C",
    address_hash     bytea,
    address          bytea,      -- packed stentor.v1.Sealed
    correlation_id   text,
    source_event_id  text,
    content_checksum bytea,
    scheduled_for    timestamptz,
    expires_at       timestamptz,
    queued_at        timestamptz,
    scheduled_at     timestamptz,
    rendered_at      timestamptz,
    sent_at          timestamptz,
    delivered_at     timestamptz,
    opened_at        timestamptz,
    clicked_at       timestamptz,
    ended_at         timestamptz, -- suppressed, superseded, failed, bounced, complained
    updated_at       timestamptz NOT NULL DEFAULT now(), -- when the row was last written; not part of the projection's value
    batch_id         text COLLATE "C",
    PRIMARY KEY (created_at, id, tenant_id) -- with the tenant: an id forged by another tenant makes a row of its own
) PARTITION BY RANGE (created_at);
-- Not over the status as well: an index over a column that changes with every event makes each such update of any row, of a
-- batch or not, write all index entries of the row again.
CREATE INDEX notifications_batch ON archiver.notifications (batch_id) WHERE batch_id IS NOT NULL;
SELECT stentor.isolate('archiver.notifications');

CREATE TABLE archiver.delivery_attempts (
    created_at        timestamptz      NOT NULL, -- the notification's
    notification_id   text COLLATE "C" NOT NULL,
    attempt_number    smallint         NOT NULL,
    id                text COLLATE "C" NOT NULL, -- dat_
    tenant_id         text COLLATE "C" NOT NULL,
    channel           text COLLATE "C" NOT NULL,
    vendor            text             NOT NULL,
    vendor_message_id text,
    outcome           text COLLATE "C" NOT NULL CHECK (outcome IN ('accepted', 'rejected_retryable', 'rejected_terminal', 'timeout',
                                              'delivered', 'bounce', 'complaint', 'opened', 'clicked', 'failed')),
    code              text,
    enhanced_code     text,
    reply             text,
    started_at        timestamptz,
    finished_at       timestamptz,
    was_unknown       boolean          NOT NULL DEFAULT false,
    PRIMARY KEY (created_at, notification_id, attempt_number, tenant_id)
) PARTITION BY RANGE (created_at);
SELECT stentor.isolate('archiver.delivery_attempts');

-- How far each stream was folded, in the same transaction as the rows.
CREATE TABLE archiver.positions (
    projection        text        NOT NULL,
    stream            text        NOT NULL,
    sequence          bigint      NOT NULL,
    stream_created_at timestamptz NOT NULL,
    -- When the message at the position was stored. A log that lost its tail (a power cut, a store restored from a copy) gives the
    -- same sequence to another message; its time tells them apart.
    stored_at         timestamptz,
    PRIMARY KEY (projection, stream)
);

SELECT stentor.ensure_partitions('archiver.notifications', now() - interval '1 month', now() + interval '12 months');
SELECT stentor.ensure_partitions('archiver.delivery_attempts', now() - interval '1 month', now() + interval '12 months');

GRANT USAGE ON SCHEMA archiver TO stentor_archiver, stentor_cli;
GRANT SELECT, INSERT, UPDATE ON archiver.notifications, archiver.delivery_attempts, archiver.positions TO stentor_archiver;
GRANT SELECT ON archiver.notifications, archiver.delivery_attempts, archiver.positions TO stentor_cli;
