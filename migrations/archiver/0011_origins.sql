-- SPDX-License-Identifier: Apache-2.0
-- Which From domain a mail had and whose mailbox it went to ("gmail.com" ... "other"), for the guard rails (services/archiver/guard). Rows of before
-- have NULL there; so have archived objects of before, which have no such columns.
ALTER TABLE archiver.notifications ADD COLUMN from_domain text, ADD COLUMN provider text;
ALTER TABLE archiver.late_notifications ADD COLUMN from_domain text, ADD COLUMN provider text;

-- As stentor.recent_outcomes, which an archiver of the version before still calls, by From domain and provider.
CREATE FUNCTION stentor.recent_mail_outcomes(since timestamptz)
    RETURNS TABLE (tenant text, from_domain text, provider text, step timestamptz, sent bigint, bounced bigint, complained bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT n.tenant_id, n.from_domain, n.provider, date_bin('5 minutes', o.at, timestamptz '2000-01-01 00:00:00Z'),
           sum(o.sent), sum(o.bounced), sum(o.complained)
    FROM archiver.notifications n
    CROSS JOIN LATERAL (VALUES (n.sent_at, 1, 0, 0),
                               (CASE WHEN n.status = 'bounced' THEN n.ended_at END, 0, 1, 0),
                               (CASE WHEN n.status = 'complained' THEN n.ended_at END, 0, 0, 1)) AS o (at, sent, bounced, complained)
    WHERE n.channel = 'email' AND n.created_at >= since - interval '2 days' AND o.at >= since
      AND n.from_domain IS NOT NULL AND n.provider IS NOT NULL
    GROUP BY 1, 2, 3, 4
$$;
GRANT EXECUTE ON FUNCTION stentor.recent_mail_outcomes(timestamptz) TO stentor_archiver;

-- Where mails went that a callback speaks of: a vendor's event knows neither From nor address. Each by the time in its id.
CREATE FUNCTION stentor.mail_origins(created timestamptz[], ids text[], tenants text[])
    RETURNS TABLE (n bigint, from_domain text, provider text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT u.n, m.from_domain, m.provider
    FROM unnest(created, ids, tenants) WITH ORDINALITY AS u (created_at, id, tenant_id, n)
    JOIN archiver.notifications m ON m.created_at = u.created_at AND m.id = u.id AND m.tenant_id = u.tenant_id
    WHERE m.from_domain IS NOT NULL AND m.provider IS NOT NULL
$$;
GRANT EXECUTE ON FUNCTION stentor.mail_origins(timestamptz[], text[], text[]) TO stentor_archiver;
