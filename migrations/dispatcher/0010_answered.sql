-- SPDX-License-Identifier: Apache-2.0
-- What gateway asks the send ledger for. In schema stentor, as its other questions.

-- Which notifications the vendors' messages were, by their place in the arrays; NULL of one that is not known. The predicate is
-- that of the index ledger_vendor_message.
CREATE FUNCTION stentor.notifications_of_messages(of_tenant text, vendors text[], messages text[])
    RETURNS TABLE (place integer, notification_id text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT w.place::integer, (
        SELECT l.notification_id FROM dispatcher.ledger l
        WHERE l.vendor_message_id = w.message AND l.vendor = w.vendor AND l.tenant_id = of_tenant
          AND NOT starts_with(l.vendor_message_id COLLATE "C", l.notification_id || '@')
        ORDER BY l.created_at DESC LIMIT 1)
    FROM unnest(vendors, messages) WITH ORDINALITY AS w(vendor, message, place)
    $$;

GRANT EXECUTE ON FUNCTION stentor.notifications_of_messages(text, text[], text[]) TO stentor_gateway;
