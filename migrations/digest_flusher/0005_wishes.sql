-- SPDX-License-Identifier: Apache-2.0
-- What a person says while a notification waits for its time counts when the time has come. Until now it counted in
-- digest windows only, and a withdrawn consent not even there.

ALTER TABLE digest_flusher.due_work
    ADD COLUMN recipient_id text COLLATE "C", -- whose wishes may stop it; null: nobody's
    ADD COLUMN category     text COLLATE "C",
    ADD COLUMN channel      text COLLATE "C";

-- A copy folded from PEOPLE, as digest_flusher.preferences is.
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
-- PEOPLE is read again from its beginning, for the consents that were passed over.
DELETE FROM digest_flusher.positions WHERE projection = 'digests';

-- Why a recipient must not get it now: 'no_address', 'unsubscribed', 'no_consent', 'preference', or null: it may go.
-- Transactional, security and compliance mail is not stopped by a wish. The order is the gate's.
CREATE FUNCTION digest_flusher.wish_verdict(of_tenant text, of_recipient text, of_category text, of_channel text) RETURNS text
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
    LEFT JOIN digest_flusher.silenced s ON s.tenant_id = of_tenant AND s.recipient_id = of_recipient
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

-- As in 0004, with the consents; 'immediate': no digest is wanted any more.
CREATE OR REPLACE FUNCTION digest_flusher.digest_verdict(of_tenant text, of_recipient text, of_category text, of_channel text) RETURNS text
    LANGUAGE sql STABLE
    AS $$
    SELECT coalesce(digest_flusher.wish_verdict(of_tenant, of_recipient, of_category, of_channel),
                    CASE WHEN p.is_immediate IS NOT FALSE OR p.is_off THEN 'immediate' END)
    FROM (SELECT 1) AS one
    LEFT JOIN LATERAL (
        SELECT e.is_off, e.is_immediate FROM digest_flusher.preferences e
        WHERE e.tenant_id = of_tenant AND e.recipient_id = of_recipient
          AND e.category IN (of_category, 'any') AND e.channel IN (of_channel, 'any')
        ORDER BY e.category = 'any', e.channel = 'any' LIMIT 1) AS p ON true
$$;

-- As in 0003, with the recipient's wishes, asked once: at the first claim.
CREATE OR REPLACE FUNCTION digest_flusher.claim_work(lease interval, at_most integer)
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
    judged AS (
        -- A deferral and its cancellation that were stored at the same moment did not see each other.
        SELECT due.work_id, x.reason AS cancelled,
               CASE WHEN due.is_open AND due.recipient_id IS NOT NULL
                    THEN digest_flusher.wish_verdict(due.tenant_id, due.recipient_id, due.category, due.channel) END AS verdict
        FROM due LEFT JOIN digest_flusher.cancellations x
            ON due.is_open AND x.tenant_id = due.tenant_id AND x.cancel_key = due.cancel_key AND x.before_at > due.caused_at)
    UPDATE digest_flusher.due_work w SET claimed_until = now() + lease,
        status = CASE WHEN judged.cancelled IS NULL AND judged.verdict IS NULL THEN w.status ELSE 'suppressed' END,
        reason_code = CASE WHEN judged.cancelled IS NULL THEN coalesce(judged.verdict, w.reason_code) ELSE 'obsolete' END,
        detail = coalesce(judged.cancelled, w.detail)
    FROM judged WHERE w.work_id = judged.work_id
    RETURNING w.work_id, w.due_at, w.subject, w.event_id, w.payload, w.status, w.reason_code, w.detail, w.window_id
$$;

-- Delivered once more after it has gone out, it must not be told as suppressed by a wish of since then either.
CREATE OR REPLACE FUNCTION digest_flusher.done(work_ids text[]) RETURNS bigint
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    WITH gone AS (
        DELETE FROM digest_flusher.due_work d WHERE d.work_id = ANY (work_ids)
        RETURNING d.work_id, d.tenant_id, d.cancel_key IS NOT NULL OR d.recipient_id IS NOT NULL AS is_stoppable),
    kept AS (INSERT INTO digest_flusher.emitted (work_id, tenant_id)
             SELECT g.work_id, g.tenant_id FROM gone g WHERE g.is_stoppable ON CONFLICT DO NOTHING)
    SELECT count(*) FROM gone
$$;

REVOKE ALL ON FUNCTION digest_flusher.wish_verdict(text, text, text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION digest_flusher.wish_verdict(text, text, text, text) TO stentor_digest_flusher;
GRANT SELECT, INSERT, UPDATE, DELETE ON digest_flusher.consents TO stentor_digest_flusher;
