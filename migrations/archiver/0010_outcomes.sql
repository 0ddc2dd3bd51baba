-- SPDX-License-Identifier: Apache-2.0
-- What became of the e-mails of the last day, for the guard rails (services/archiver/guard): read once when an archiver takes over. In
-- schema stentor, as in 0002. A bounce or complaint about a mail that is older than three days is not looked for.
CREATE FUNCTION stentor.recent_outcomes(since timestamptz)
    RETURNS TABLE (tenant text, step timestamptz, sent bigint, bounced bigint, complained bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT n.tenant_id, date_bin('5 minutes', o.at, timestamptz '2000-01-01 00:00:00Z'), sum(o.sent), sum(o.bounced), sum(o.complained)
    FROM archiver.notifications n
    CROSS JOIN LATERAL (VALUES (n.sent_at, 1, 0, 0),
                               (CASE WHEN n.status = 'bounced' THEN n.ended_at END, 0, 1, 0),
                               (CASE WHEN n.status = 'complained' THEN n.ended_at END, 0, 0, 1)) AS o (at, sent, bounced, complained)
    WHERE n.channel = 'email' AND n.created_at >= since - interval '2 days' AND o.at >= since
    GROUP BY 1, 2
$$;
GRANT EXECUTE ON FUNCTION stentor.recent_outcomes(timestamptz) TO stentor_archiver;
