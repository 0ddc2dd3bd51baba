-- SPDX-License-Identifier: Apache-2.0
-- A page of what waits costs what is on it, however much waits: 0007 read and sorted every item of a tenant's open windows for each page,
-- and every row for one recipient, key or reason.

DROP INDEX digest_flusher.due_work_tenant;
CREATE INDEX due_work_tenant ON digest_flusher.due_work (tenant_id, reason, due_at, work_id);
CREATE INDEX digest_windows_tenant ON digest_flusher.digest_windows (tenant_id, due_at, window_id) WHERE state = 'open';
CREATE INDEX due_work_recipient ON digest_flusher.due_work (tenant_id, coalesce(to_recipient, recipient_id), due_at, work_id)
    WHERE coalesce(to_recipient, recipient_id) IS NOT NULL;

-- As before. A plan is made for each call, so a filter that is not given is not in it, and one that is finds its index. Items of one time
-- come window by window: their place in the list, which is all that work_id is for here, is "<window>/<notification>". A page has at most
-- 8 MiB of requests, which may have 64 KiB of variables each: the rows behind them come without.
CREATE OR REPLACE FUNCTION digest_flusher.scheduled(of_tenant text, only_reason text, only_recipient text, only_key text, until timestamptz,
                                                    after_due timestamptz, after_id text, at_most integer)
    RETURNS TABLE (work_id text, notification_id text, reason text, due_at timestamptz, cancellable boolean, recipient_id text,
                   channel text, category text, cancel_key text, window_id text, attempt smallint, request bytea)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan SET jit = off
    AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT p.work_id, p.notification_id, p.reason, p.due_at, p.cancellable, p.recipient_id, p.channel, p.category, p.cancel_key, p.window_id,
           p.attempt, CASE WHEN sum(length(p.request)) OVER (ORDER BY p.due_at, p.work_id ROWS UNBOUNDED PRECEDING) <= 8388608 THEN p.request END
    FROM (SELECT * FROM (
        (SELECT w.*
         FROM unnest(ARRAY['schedule', 'quiet', 'limit', 'digest', 'retry']) AS kind
         CROSS JOIN LATERAL (
             SELECT w.work_id, w.notification_id, w.reason, w.due_at,
                    w.claimed_until IS NULL AND w.due_at > now() AND w.reason <> 'retry' AS cancellable,
                    coalesce(w.to_recipient, w.recipient_id), nullif(w.channel, ''), nullif(w.category, ''), w.cancel_key, NULL AS window_id,
                    w.attempt, CASE WHEN w.reason <> 'retry' THEN w.payload END
             FROM digest_flusher.due_work w
             WHERE w.tenant_id = of_tenant AND w.reason = kind AND w.status IS NULL AND (w.due_at, w.work_id) > (after_due, after_id)
               AND (only_recipient IS NULL OR coalesce(w.to_recipient, w.recipient_id) = only_recipient)
               AND (only_key IS NULL OR w.cancel_key = only_key) AND (until IS NULL OR w.due_at < until)
             ORDER BY w.due_at, w.work_id LIMIT at_most) AS w
         WHERE only_reason IS NULL OR kind = only_reason)
        UNION ALL
        (SELECT d.window_id || '/' || i.notification_id, i.notification_id, 'digest', d.due_at, d.due_at > now(), d.recipient_id, d.channel,
                d.category, i.cancel_key, d.window_id, NULL, i.payload
         FROM digest_flusher.digest_windows d
         JOIN digest_flusher.digest_items i ON i.tenant_id = d.tenant_id AND i.window_id = d.window_id AND i.payload IS NOT NULL
         WHERE d.tenant_id = of_tenant AND d.state = 'open' AND (only_reason IS NULL OR only_reason = 'digest')
           AND (d.due_at, d.window_id) >= (after_due, split_part(after_id, '/', 1))
           AND (d.due_at > after_due OR d.window_id || '/' || i.notification_id > after_id)
           AND (only_recipient IS NULL OR d.recipient_id = only_recipient)
           AND (only_key IS NULL OR i.cancel_key = only_key) AND (until IS NULL OR d.due_at < until)
         ORDER BY d.due_at, d.window_id, i.notification_id LIMIT at_most)) AS both_kinds
          ORDER BY due_at, work_id LIMIT at_most) AS p (work_id, notification_id, reason, due_at, cancellable, recipient_id, channel, category,
                                                        cancel_key, window_id, attempt, request)
    ORDER BY p.due_at, p.work_id;
END
$$;
