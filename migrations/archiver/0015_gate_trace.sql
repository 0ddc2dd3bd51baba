-- SPDX-License-Identifier: Apache-2.0
-- What the gate asked of each notification and how each question came out, in a line of 6 to some 40 characters
-- (common/model/rules/gate_trace.h). Rows of before have NULL there; so have archived objects of before, which have no such column.
ALTER TABLE archiver.notifications ADD COLUMN gate_trace text;
ALTER TABLE archiver.late_notifications ADD COLUMN gate_trace text;

-- What history knows of one notification besides stentor.notification_shown, for who asks why. Likewise merged.
CREATE FUNCTION stentor.notification_details(of_tenant text, of_created timestamptz, of_id text)
    RETURNS TABLE (gate_trace text, address_hash bytea, locale text, source_event_id text, source_event_type text, digest_window_id text,
                   copy_of text, from_domain text, provider text, expires_at timestamptz, content_checksum bytea)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan SET jit = off
    AS $$
DECLARE
    of_class text := stentor.retention_class(of_id);
BEGIN
    RETURN QUERY
    SELECT max(b.gate_trace), (array_agg(b.address_hash ORDER BY b.status_rank DESC) FILTER (WHERE b.address_hash IS NOT NULL))[1],
           max(b.locale), max(b.source_event_id), max(b.source_event_type), max(b.digest_window_id), max(b.copy_of), max(b.from_domain),
           max(b.provider), min(b.expires_at),
           (array_agg(b.content_checksum ORDER BY b.status_rank DESC) FILTER (WHERE b.content_checksum IS NOT NULL))[1]
    FROM (SELECT n.* FROM archiver.notifications n
          WHERE n.created_at = of_created AND n.id = of_id AND n.tenant_id = of_tenant AND n.retention_class = of_class
          UNION ALL
          SELECT l.* FROM archiver.late_notifications l
          WHERE l.created_at = of_created AND l.id = of_id AND l.tenant_id = of_tenant AND l.retention_class = of_class) b
    HAVING count(*) > 0;
END
$$;
GRANT EXECUTE ON FUNCTION stentor.notification_details(text, timestamptz, text) TO stentor_gateway;
