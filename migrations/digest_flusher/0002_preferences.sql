-- SPDX-License-Identifier: Apache-2.0
-- What digests and waiting work need of PEOPLE, folded from that stream, and what it decides. A recipient's change counts for
-- everything that has not gone out yet.

CREATE TABLE digest_flusher.preferences (
    tenant_id    text COLLATE "C" NOT NULL,
    recipient_id text COLLATE "C" NOT NULL,
    category     text COLLATE "C" NOT NULL CHECK (category IN ('any', 'transactional', 'operational', 'security', 'reminder', 'marketing',
                                          'system', 'academic', 'billing', 'social', 'compliance')),
    channel      text COLLATE "C" NOT NULL CHECK (channel IN ('any', 'email', 'sms', 'whatsapp', 'push', 'inapp', 'voice', 'webhook')),
    is_off       boolean          NOT NULL,
    is_immediate boolean          NOT NULL,
    PRIMARY KEY (tenant_id, recipient_id, category, channel)
);
SELECT stentor.isolate('digest_flusher.preferences');

CREATE TABLE digest_flusher.consents (
    tenant_id    text COLLATE "C" NOT NULL,
    recipient_id text COLLATE "C" NOT NULL,
    category     text COLLATE "C" NOT NULL CHECK (category IN ('any', 'transactional', 'operational', 'security', 'reminder', 'marketing',
                                          'system', 'academic', 'billing', 'social', 'compliance')),
    channel      text COLLATE "C" NOT NULL CHECK (channel IN ('any', 'email', 'sms', 'whatsapp', 'push', 'inapp', 'voice', 'webhook')),
    is_granted   boolean          NOT NULL,
    PRIMARY KEY (tenant_id, recipient_id, category, channel)
);
SELECT stentor.isolate('digest_flusher.consents');

-- Recipients that get nothing more; all others have no row.
CREATE TABLE digest_flusher.unsubscribed_recipients (
    tenant_id       text COLLATE "C" NOT NULL,
    recipient_id    text COLLATE "C" NOT NULL,
    is_removed      boolean          NOT NULL,
    is_unsubscribed boolean          NOT NULL,
    PRIMARY KEY (tenant_id, recipient_id)
);
SELECT stentor.isolate('digest_flusher.unsubscribed_recipients');

CREATE TABLE digest_flusher.positions (
    projection        text        NOT NULL,
    stream            text        NOT NULL,
    sequence          bigint      NOT NULL,
    stream_created_at timestamptz NOT NULL,
    stored_at         timestamptz,
    PRIMARY KEY (projection, stream)
);

-- Why a recipient must not get it now: 'no_address', 'unsubscribed', 'no_consent', 'preference', or null: it may go.
-- No preference stops transactional, security and compliance mail. The order is the gate's. The most specific entry decides:
-- (category, channel), (category, any), (any, channel), (any, any).
CREATE FUNCTION digest_flusher.preference_verdict(of_tenant text, of_recipient text, of_category text, of_channel text) RETURNS text
    LANGUAGE sql STABLE
    AS $$
    SELECT CASE
        WHEN s.is_removed THEN 'no_address'
        WHEN of_category IN ('transactional', 'security', 'compliance') THEN NULL
        WHEN s.is_unsubscribed THEN 'unsubscribed'
        WHEN NOT c.is_granted THEN 'no_consent'
        WHEN p.is_off THEN 'preference'
    END
    FROM (SELECT 1) AS one
    LEFT JOIN digest_flusher.unsubscribed_recipients s ON s.tenant_id = of_tenant AND s.recipient_id = of_recipient
    LEFT JOIN LATERAL (
        SELECT e.is_granted FROM digest_flusher.consents e
        WHERE e.tenant_id = of_tenant AND e.recipient_id = of_recipient
          AND e.category IN (of_category, 'any') AND e.channel IN (of_channel, 'any')
        ORDER BY e.category = 'any', e.channel = 'any' LIMIT 1) AS c ON true
    LEFT JOIN LATERAL (
        SELECT e.is_off FROM digest_flusher.preferences e
        WHERE e.tenant_id = of_tenant AND e.recipient_id = of_recipient
          AND e.category IN (of_category, 'any') AND e.channel IN (of_channel, 'any')
        ORDER BY e.category = 'any', e.channel = 'any' LIMIT 1) AS p ON true
$$;

-- The same for a digest; 'immediate': no digest is wanted any more.
CREATE FUNCTION digest_flusher.digest_verdict(of_tenant text, of_recipient text, of_category text, of_channel text) RETURNS text
    LANGUAGE sql STABLE
    AS $$
    SELECT coalesce(digest_flusher.preference_verdict(of_tenant, of_recipient, of_category, of_channel),
                    CASE WHEN p.is_immediate IS NOT FALSE OR p.is_off THEN 'immediate' END)
    FROM (SELECT 1) AS one
    LEFT JOIN LATERAL (
        SELECT e.is_off, e.is_immediate FROM digest_flusher.preferences e
        WHERE e.tenant_id = of_tenant AND e.recipient_id = of_recipient
          AND e.category IN (of_category, 'any') AND e.channel IN (of_channel, 'any')
        ORDER BY e.category = 'any', e.channel = 'any' LIMIT 1) AS p ON true
$$;

-- Claims what is due. The first claim decides what becomes of a row: a cancellation, then the recipient's preferences.
CREATE FUNCTION digest_flusher.claim_work(lease interval, at_most integer)
    RETURNS TABLE (work_id text, due_at timestamptz, subject text, event_id text, payload bytea,
                   status text, reason_code text, detail text, window_id text)
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    WITH due AS MATERIALIZED (
        SELECT c.work_id, c.tenant_id, c.cancel_key, c.caused_at, c.recipient_id, c.category, c.channel,
               c.status IS NULL AND c.claimed_until IS NULL AS is_open
        FROM digest_flusher.due_work c
        WHERE c.due_at <= now() AND (c.claimed_until IS NULL OR c.claimed_until < now())
        ORDER BY c.due_at LIMIT at_most FOR UPDATE SKIP LOCKED),
    decided AS (
        -- A deferral and its cancellation that were stored at the same moment did not see each other.
        SELECT due.work_id, x.reason AS cancelled,
               CASE WHEN due.is_open AND due.recipient_id IS NOT NULL
                    THEN digest_flusher.preference_verdict(due.tenant_id, due.recipient_id, due.category, due.channel) END AS verdict
        FROM due LEFT JOIN digest_flusher.cancellations x
            ON due.is_open AND x.tenant_id = due.tenant_id AND x.cancel_key = due.cancel_key AND x.before_at > due.caused_at)
    UPDATE digest_flusher.due_work w SET claimed_until = now() + lease,
        status = CASE WHEN decided.cancelled IS NULL AND decided.verdict IS NULL THEN w.status ELSE 'suppressed' END,
        reason_code = CASE WHEN decided.cancelled IS NULL THEN coalesce(decided.verdict, w.reason_code) ELSE 'obsolete' END,
        detail = coalesce(decided.cancelled, w.detail)
    FROM decided WHERE w.work_id = decided.work_id
    RETURNING w.work_id, w.due_at, w.subject, w.event_id, w.payload, w.status, w.reason_code, w.detail, w.window_id
$$;

GRANT SELECT, INSERT, UPDATE, DELETE ON digest_flusher.preferences, digest_flusher.consents, digest_flusher.unsubscribed_recipients
    TO stentor_digest_flusher;
GRANT SELECT, INSERT, UPDATE ON digest_flusher.positions TO stentor_digest_flusher;
GRANT SELECT ON digest_flusher.positions TO stentor_cli; -- `stentor doctor` shows how far each projection is
GRANT EXECUTE ON FUNCTION digest_flusher.preference_verdict(text, text, text, text), digest_flusher.digest_verdict(text, text, text, text),
    digest_flusher.claim_work(interval, integer) TO stentor_digest_flusher;
