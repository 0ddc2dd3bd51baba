-- SPDX-License-Identifier: Apache-2.0
-- A month of history for the demo's tenant, two months ago: what `stentor archive run` moves to object storage. No address, no content.
SELECT stentor.ensure_partitions(t::regclass, now() - interval '2 months', now() - interval '2 months')
FROM unnest(ARRAY['archiver.notifications', 'archiver.delivery_attempts']) t;
WITH made AS (
    SELECT date_trunc('month', now() AT TIME ZONE 'UTC' - interval '2 months') AT TIME ZONE 'UTC' + n * interval '37 minutes' AS at, n
    FROM generate_series(1, 1000) n),
timed AS ( -- an id begins with its time, 10 digits of Crockford's base 32
    SELECT at, n, (SELECT string_agg(substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (((extract(epoch FROM at) * 1000)::bigint >> 5 * (9 - i)) & 31)::int, 1),
        '' ORDER BY i) FROM generate_series(0, 9) i) AS digits FROM made),
notified AS (
    INSERT INTO archiver.notifications (created_at, id, tenant_id, channel, category, priority, status, status_rank, template,
        template_version, locale, recipient_id, address_hash, queued_at, sent_at, retention_class)
    SELECT at, 'ntf_' || digits || lpad(n::text, 16, '0'), 'demo', 'email', 'billing', 'normal', 'sent', 5, 'welcome', '1.0.0', 'en',
        'rcp_demo' || n % 50, sha256(convert_to('demo' || n % 50, 'UTF8')), at, at + interval '2 seconds', 'R' FROM timed
    ON CONFLICT DO NOTHING RETURNING created_at, id, queued_at, sent_at)
INSERT INTO archiver.delivery_attempts (created_at, notification_id, attempt_number, id, tenant_id, channel, vendor, outcome, code,
    started_at, finished_at, retention_class)
SELECT created_at, id, 1, 'dat_' || right(id, 26), 'demo', 'email', 'smtp', 'accepted', '250', queued_at, sent_at, 'R' FROM notified;
