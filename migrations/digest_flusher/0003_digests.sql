-- SPDX-License-Identifier: Apache-2.0
-- Digests: one recipient's notifications of a category on a channel, gathered until a time and sent as one.
-- A window goes open -> flushing -> absorbing -> flushed. In `flushing` its items are fixed, in `absorbing` the digest is
-- in due_work and the items follow it there, bounded at a time; from there they go out as all work does.

CREATE TABLE digest_flusher.digest_windows (
    tenant_id        text COLLATE "C" NOT NULL,
    window_id        text COLLATE "C" NOT NULL, -- dgw_; derived, so the tenant is a part of the key: no caller can name another's
    recipient_id     text COLLATE "C" NOT NULL,
    category         text COLLATE "C" NOT NULL CHECK (category IN ('transactional', 'operational', 'security', 'reminder', 'marketing',
                                              'system', 'academic', 'billing', 'social', 'compliance')),
    channel          text COLLATE "C" NOT NULL CHECK (channel IN ('email', 'sms', 'whatsapp', 'push', 'inapp', 'voice', 'webhook')),
    flush_at         timestamptz      NOT NULL,
    due_at           timestamptz      NOT NULL, -- flush_at, or earlier when the recipient changed a preference
    template         text             NOT NULL,
    template_version text             NOT NULL,
    locale           text             NOT NULL,
    state            text COLLATE "C" NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'flushing', 'absorbing', 'flushed')),
    verdict          text COLLATE "C", -- why the items are suppressed; null: they are not
    opened_at        timestamptz      NOT NULL, -- when its first item was accepted
    frozen_at        timestamptz,
    claimed_until    timestamptz,
    digest_id        text COLLATE "C", -- the digest's notification; null: the items go out as themselves
    flushed_at       timestamptz,
    PRIMARY KEY (tenant_id, window_id)
);
CREATE INDEX digest_windows_due ON digest_flusher.digest_windows (due_at) WHERE state IN ('open', 'flushing');
CREATE INDEX digest_windows_absorbing ON digest_flusher.digest_windows (due_at) WHERE state = 'absorbing';
CREATE INDEX digest_windows_recipient ON digest_flusher.digest_windows (tenant_id, recipient_id) WHERE state = 'open';
CREATE INDEX digest_windows_flushed ON digest_flusher.digest_windows (flushed_at) WHERE state = 'flushed';
CREATE INDEX digest_windows_digest ON digest_flusher.digest_windows (digest_id) WHERE digest_id IS NOT NULL;
SELECT stentor.isolate('digest_flusher.digest_windows');

-- An item waits while it has its payload. Without, it is remembered: delivered again it does not come again.
CREATE TABLE digest_flusher.digest_items (
    tenant_id       text COLLATE "C" NOT NULL,
    window_id       text COLLATE "C" NOT NULL,
    notification_id text COLLATE "C" NOT NULL,
    work_id         text COLLATE "C" NOT NULL, -- event id of the Deferred
    subject         text COLLATE "C" NOT NULL, -- where it goes when it goes out as itself
    event_id        text COLLATE "C" NOT NULL,
    accepted_at     timestamptz      NOT NULL,
    expires_at      timestamptz,
    cancel_key      text COLLATE "C",
    caused_at       timestamptz      NOT NULL,
    payload         bytea,                     -- packed stentor.v1.NotificationRequest
    PRIMARY KEY (tenant_id, window_id, notification_id)
);
CREATE INDEX digest_items_cancel ON digest_flusher.digest_items (tenant_id, cancel_key) WHERE cancel_key IS NOT NULL AND payload IS NOT NULL;
CREATE INDEX digest_items_waiting ON digest_flusher.digest_items (work_id) WHERE payload IS NOT NULL;
SELECT stentor.isolate('digest_flusher.digest_items');

-- Freezes what is due, or takes over what a dead process froze: from here on the window's items are fixed. One row for each
-- item that the digest may show (the oldest first, at most items_max and bytes_max) and for the newest; `live` counts all
-- that have not expired. A window without any, or with a verdict, has one row without an item.
CREATE FUNCTION digest_flusher.digest_freeze(lease interval, at_most integer, items_max integer, bytes_max bigint)
    RETURNS TABLE (tenant_id text, window_id text, flush_at timestamptz, frozen_at timestamptz, template text,
                   template_version text, locale text, verdict text, live bigint, listed boolean, payload bytea)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
#variable_conflict use_column
DECLARE
    tenants text[];
    windows text[];
BEGIN
    WITH due AS MATERIALIZED (
        SELECT w.tenant_id, w.window_id FROM digest_flusher.digest_windows w
        WHERE w.state IN ('open', 'flushing') AND w.due_at <= now() AND (w.claimed_until IS NULL OR w.claimed_until < now())
        ORDER BY w.due_at LIMIT at_most FOR UPDATE SKIP LOCKED),
    frozen AS (
        UPDATE digest_flusher.digest_windows w SET state = 'flushing', claimed_until = now() + lease,
            frozen_at = coalesce(w.frozen_at, now()),
            verdict = CASE WHEN w.state = 'open'
                THEN nullif(digest_flusher.digest_verdict(w.tenant_id, w.recipient_id, w.category, w.channel), 'immediate')
                ELSE w.verdict END
        FROM due WHERE w.tenant_id = due.tenant_id AND w.window_id = due.window_id
        RETURNING w.tenant_id, w.window_id)
    SELECT array_agg(f.tenant_id), array_agg(f.window_id) INTO tenants, windows FROM frozen f;
    IF windows IS NULL THEN
        RETURN;
    END IF;
    -- An item and its cancellation that were stored at the same moment did not see each other. Only what is frozen here
    -- and now: what a dead process froze, it may have read.
    WITH gone AS MATERIALIZED (
        SELECT i.*, x.reason FROM unnest(tenants, windows) AS f(tenant_id, window_id)
        JOIN digest_flusher.digest_windows w ON w.tenant_id = f.tenant_id AND w.window_id = f.window_id AND w.frozen_at = now()
        JOIN digest_flusher.digest_items i ON i.tenant_id = f.tenant_id AND i.window_id = f.window_id AND i.payload IS NOT NULL
        JOIN digest_flusher.cancellations x ON x.tenant_id = i.tenant_id AND x.cancel_key = i.cancel_key AND x.before_at > i.caused_at),
    queued AS (
        INSERT INTO digest_flusher.due_work (work_id, tenant_id, notification_id, reason, due_at, subject, event_id, payload,
                                    status, reason_code, detail)
        SELECT g.work_id, g.tenant_id, g.notification_id, 'digest', now(), g.subject, g.event_id, g.payload,
               'suppressed', 'obsolete', g.reason FROM gone g
        ON CONFLICT DO NOTHING)
    UPDATE digest_flusher.digest_items i SET payload = NULL FROM gone g
    WHERE i.tenant_id = g.tenant_id AND i.window_id = g.window_id AND i.notification_id = g.notification_id;
    RETURN QUERY
    SELECT w.tenant_id, w.window_id, w.flush_at, w.frozen_at, w.template, w.template_version, w.locale, w.verdict,
           coalesce(i.live, 0), coalesce(i.at <= items_max AND i.bytes <= bytes_max, false), i.payload
    FROM unnest(tenants, windows) AS f(tenant_id, window_id)
    JOIN digest_flusher.digest_windows w ON w.tenant_id = f.tenant_id AND w.window_id = f.window_id
    LEFT JOIN LATERAL (
        SELECT d.payload, count(*) OVER () AS live, row_number() OVER oldest AS at, sum(length(d.payload)) OVER oldest AS bytes
        FROM digest_flusher.digest_items d
        WHERE d.tenant_id = w.tenant_id AND d.window_id = w.window_id AND d.payload IS NOT NULL
          AND (d.expires_at IS NULL OR d.expires_at > w.frozen_at)
        WINDOW oldest AS (ORDER BY d.accepted_at, d.notification_id)) AS i ON w.verdict IS NULL
    WHERE i.at IS NULL OR i.at = i.live OR (i.at <= items_max AND i.bytes <= bytes_max)
    ORDER BY w.tenant_id, w.window_id, i.at;
END
$$;

-- The items of windows whose digest is decided become due work: superseded, suppressed or as themselves (a window without
-- a digest, an item that has expired: the stages decide). At most so many items; a window of which none is left is flushed.
CREATE FUNCTION digest_flusher.digest_absorb(at_most integer) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    tenants text[];
    windows text[];
    moved bigint;
BEGIN
    SELECT array_agg(c.tenant_id), array_agg(c.window_id) INTO tenants, windows FROM (
        SELECT w.tenant_id, w.window_id FROM digest_flusher.digest_windows w WHERE w.state = 'absorbing'
        ORDER BY w.due_at LIMIT 256 FOR UPDATE SKIP LOCKED) AS c;
    IF windows IS NULL THEN
        RETURN 0;
    END IF;
    WITH gone AS MATERIALIZED (
        SELECT i.*, w.verdict, w.digest_id, w.frozen_at FROM unnest(tenants, windows) AS f(tenant_id, window_id)
        JOIN digest_flusher.digest_windows w ON w.tenant_id = f.tenant_id AND w.window_id = f.window_id
        JOIN digest_flusher.digest_items i ON i.tenant_id = f.tenant_id AND i.window_id = f.window_id AND i.payload IS NOT NULL
        LIMIT at_most),
    sorted AS (
        SELECT g.*, CASE WHEN g.verdict IS NOT NULL THEN 'suppressed' WHEN g.expires_at <= g.frozen_at THEN NULL
                         WHEN g.digest_id IS NOT NULL THEN 'superseded' END AS status FROM gone g),
    queued AS (
        INSERT INTO digest_flusher.due_work (work_id, tenant_id, notification_id, reason, due_at, subject, event_id, payload,
                                    status, reason_code, window_id)
        SELECT s.work_id, s.tenant_id, s.notification_id, 'digest', now(), s.subject, s.event_id, s.payload, s.status,
               CASE s.status WHEN 'suppressed' THEN s.verdict WHEN 'superseded' THEN 'digest' END,
               CASE s.status WHEN 'superseded' THEN s.window_id END
        FROM sorted s
        ON CONFLICT DO NOTHING),
    emptied AS (
        UPDATE digest_flusher.digest_items i SET payload = NULL FROM gone g
        WHERE i.tenant_id = g.tenant_id AND i.window_id = g.window_id AND i.notification_id = g.notification_id
        RETURNING 1)
    SELECT count(*) INTO moved FROM emptied;
    UPDATE digest_flusher.digest_windows w SET state = 'flushed', flushed_at = now()
    FROM unnest(tenants, windows) AS f(tenant_id, window_id)
    WHERE w.tenant_id = f.tenant_id AND w.window_id = f.window_id
      AND NOT EXISTS (SELECT FROM digest_flusher.digest_items i
                      WHERE i.tenant_id = w.tenant_id AND i.window_id = w.window_id AND i.payload IS NOT NULL);
    RETURN moved;
END
$$;

-- When the next window is due that is not due yet: for sleeping until then.
CREATE FUNCTION digest_flusher.digest_next() RETURNS timestamptz
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT min(due_at) FROM digest_flusher.digest_windows WHERE state IN ('open', 'flushing') AND due_at > now() $$;

-- How many windows wait and when the first is due: for metrics, it counts every such window, and so it may scan.
CREATE FUNCTION digest_flusher.digest_backlog(OUT waiting bigint, OUT next_due_at timestamptz)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = on
    AS $$ SELECT count(*), min(due_at) FROM digest_flusher.digest_windows WHERE state IN ('open', 'flushing') $$;

GRANT SELECT, INSERT, UPDATE ON digest_flusher.digest_windows, digest_flusher.digest_items TO stentor_digest_flusher;
GRANT EXECUTE ON FUNCTION digest_flusher.digest_freeze(interval, integer, integer, bigint), digest_flusher.digest_absorb(integer),
    digest_flusher.digest_next(), digest_flusher.digest_backlog() TO stentor_digest_flusher;
