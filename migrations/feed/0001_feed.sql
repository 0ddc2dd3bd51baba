-- SPDX-License-Identifier: Apache-2.0
-- In-app inboxes: FEED folded by gateway. A row is an item in the inbox of one in-app address (`recipient`, its keyed hash). Each
-- change of an item changes the counters in the same statement, so that they are at all times what a count of the items would say.
-- No index begins with the tenant (people/0001 says why).

CREATE SCHEMA feed;

CREATE TABLE feed.items (
    tenant_id          text COLLATE "C" NOT NULL,
    recipient          bytea            NOT NULL CHECK (length(recipient) = 32),
    notification_id    text COLLATE "C" NOT NULL,
    category           text COLLATE "C" NOT NULL CHECK (category IN ('transactional', 'operational', 'security', 'reminder', 'marketing',
                                                'system', 'academic', 'billing', 'social', 'compliance')),
    template           text             NOT NULL,
    locale             text,
    direction          text COLLATE "C" CHECK (direction IN ('ltr', 'rtl')),
    key_subject        bytea            NOT NULL CHECK (length(key_subject) = 16), -- whose key seals the content
    content            bytea            NOT NULL, -- packed stentor.v1.Sealed
    created_at         timestamptz      NOT NULL,
    placed_at          timestamptz      NOT NULL, -- its place in the inbox: created, or the end of a snooze
    expires_at         timestamptz,
    fetched_at         timestamptz,               -- each the earliest ...
    seen_at            timestamptz,
    opened_at          timestamptz,               -- ... read for the first time
    clicked_at         timestamptz,
    read_last_at       timestamptz,               -- read while this is later than unread_at
    unread_at          timestamptz,
    read_at            timestamptz,               -- as shown; null: unread
    archived_at        timestamptz,               -- the last word on it stands, by the time at which it was said
    archive_changed_at timestamptz,
    snoozed_until      timestamptz,
    snooze_changed_at  timestamptz,
    stored_sequence    bigint           NOT NULL, -- of FEED: the item's own message
    sequence           bigint           NOT NULL, -- the last message that changed it
    PRIMARY KEY (recipient, notification_id, tenant_id)
) PARTITION BY HASH (recipient);

CREATE TABLE feed.items_00 PARTITION OF feed.items FOR VALUES WITH (MODULUS 16, REMAINDER 0) WITH (fillfactor = 85);
CREATE TABLE feed.items_01 PARTITION OF feed.items FOR VALUES WITH (MODULUS 16, REMAINDER 1) WITH (fillfactor = 85);
CREATE TABLE feed.items_02 PARTITION OF feed.items FOR VALUES WITH (MODULUS 16, REMAINDER 2) WITH (fillfactor = 85);
CREATE TABLE feed.items_03 PARTITION OF feed.items FOR VALUES WITH (MODULUS 16, REMAINDER 3) WITH (fillfactor = 85);
CREATE TABLE feed.items_04 PARTITION OF feed.items FOR VALUES WITH (MODULUS 16, REMAINDER 4) WITH (fillfactor = 85);
CREATE TABLE feed.items_05 PARTITION OF feed.items FOR VALUES WITH (MODULUS 16, REMAINDER 5) WITH (fillfactor = 85);
CREATE TABLE feed.items_06 PARTITION OF feed.items FOR VALUES WITH (MODULUS 16, REMAINDER 6) WITH (fillfactor = 85);
CREATE TABLE feed.items_07 PARTITION OF feed.items FOR VALUES WITH (MODULUS 16, REMAINDER 7) WITH (fillfactor = 85);
CREATE TABLE feed.items_08 PARTITION OF feed.items FOR VALUES WITH (MODULUS 16, REMAINDER 8) WITH (fillfactor = 85);
CREATE TABLE feed.items_09 PARTITION OF feed.items FOR VALUES WITH (MODULUS 16, REMAINDER 9) WITH (fillfactor = 85);
CREATE TABLE feed.items_10 PARTITION OF feed.items FOR VALUES WITH (MODULUS 16, REMAINDER 10) WITH (fillfactor = 85);
CREATE TABLE feed.items_11 PARTITION OF feed.items FOR VALUES WITH (MODULUS 16, REMAINDER 11) WITH (fillfactor = 85);
CREATE TABLE feed.items_12 PARTITION OF feed.items FOR VALUES WITH (MODULUS 16, REMAINDER 12) WITH (fillfactor = 85);
CREATE TABLE feed.items_13 PARTITION OF feed.items FOR VALUES WITH (MODULUS 16, REMAINDER 13) WITH (fillfactor = 85);
CREATE TABLE feed.items_14 PARTITION OF feed.items FOR VALUES WITH (MODULUS 16, REMAINDER 14) WITH (fillfactor = 85);
CREATE TABLE feed.items_15 PARTITION OF feed.items FOR VALUES WITH (MODULUS 16, REMAINDER 15) WITH (fillfactor = 85);
CREATE INDEX items_placed ON feed.items (recipient, placed_at, notification_id);
CREATE INDEX items_subject ON feed.items (key_subject);
CREATE INDEX items_due ON feed.items (least(snoozed_until, expires_at)) WHERE snoozed_until IS NOT NULL OR expires_at IS NOT NULL;
CREATE INDEX items_created ON feed.items USING brin (created_at);
SELECT stentor.isolate('feed.items');

CREATE TABLE feed.counters (
    tenant_id text COLLATE "C" NOT NULL,
    recipient bytea            NOT NULL CHECK (length(recipient) = 32),
    category  text COLLATE "C" NOT NULL,
    unseen    integer          NOT NULL CHECK (unseen >= 0),
    unread    integer          NOT NULL CHECK (unread >= 0),
    total     integer          NOT NULL CHECK (total >= 0), -- neither archived nor snoozed
    version   bigint           NOT NULL,                    -- the message of FEED that changed them last
    PRIMARY KEY (recipient, tenant_id, category)
) WITH (fillfactor = 70);
SELECT stentor.isolate('feed.counters');

-- What the application is to hear of: written with the change that it is about, deleted when STATUS has it.
CREATE TABLE feed.statuses (
    tenant_id       text COLLATE "C" NOT NULL,
    notification_id text COLLATE "C" NOT NULL,
    status          text COLLATE "C" NOT NULL CHECK (status IN ('delivered', 'opened', 'clicked')),
    category        text COLLATE "C" NOT NULL,
    occurred_at     timestamptz      NOT NULL,
    PRIMARY KEY (notification_id, status, tenant_id)
);
SELECT stentor.isolate('feed.statuses');

-- How far FEED was folded, in the same transaction as the rows.
CREATE TABLE feed.positions (
    projection        text        NOT NULL,
    stream            text        NOT NULL,
    sequence          bigint      NOT NULL,
    stream_created_at timestamptz NOT NULL,
    stored_at         timestamptz,
    PRIMARY KEY (projection, stream)
);

-- Definer functions, because the projector works across tenants.

-- Items whose time has come: a snooze that ends, an item that expires.
CREATE FUNCTION feed.due(most integer) RETURNS TABLE (tenant_id text, recipient bytea, notification_id text, snoozed_until timestamptz,
                                                      expires_at timestamptz)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT i.tenant_id, i.recipient, i.notification_id, i.snoozed_until, i.expires_at FROM feed.items i
    WHERE (i.snoozed_until IS NOT NULL OR i.expires_at IS NOT NULL) AND least(i.snoozed_until, i.expires_at) <= now()
    ORDER BY least(i.snoozed_until, i.expires_at) LIMIT most
$$;

CREATE FUNCTION feed.waiting_statuses(most integer) RETURNS SETOF feed.statuses
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT s.* FROM feed.statuses s ORDER BY s.notification_id LIMIT most $$;

-- Items that are older than FEED keeps them, and the counters that are left without an item. Returns how many items.
CREATE FUNCTION feed.drop_old(before timestamptz, most integer) RETURNS bigint
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    WITH old AS (SELECT i.recipient, i.notification_id, i.tenant_id FROM feed.items i WHERE i.created_at < before LIMIT most),
    gone AS (DELETE FROM feed.items i USING old o
             WHERE i.recipient = o.recipient AND i.notification_id = o.notification_id AND i.tenant_id = o.tenant_id
             RETURNING i.tenant_id, i.recipient, i.category, i.archived_at IS NULL AND i.snoozed_until IS NULL AS shown,
                       i.seen_at IS NULL AS unseen, i.read_at IS NULL AS unread),
    less AS (SELECT tenant_id, recipient, category, count(*) FILTER (WHERE shown AND unseen) AS unseen,
                    count(*) FILTER (WHERE shown AND unread) AS unread, count(*) FILTER (WHERE shown) AS total FROM gone GROUP BY 1, 2, 3),
    counted AS (UPDATE feed.counters c SET unseen = c.unseen - l.unseen, unread = c.unread - l.unread, total = c.total - l.total
                FROM less l WHERE c.tenant_id = l.tenant_id AND c.recipient = l.recipient AND c.category = l.category)
    SELECT count(*) FROM gone
$$;

GRANT USAGE ON SCHEMA feed TO stentor_gateway, stentor_cli;
GRANT SELECT, INSERT, UPDATE, DELETE ON feed.items TO stentor_gateway;
GRANT SELECT, INSERT, UPDATE ON feed.counters, feed.positions TO stentor_gateway;
GRANT INSERT, SELECT, DELETE ON feed.statuses TO stentor_gateway;
GRANT SELECT ON feed.items, feed.counters, feed.positions TO stentor_cli;
GRANT EXECUTE ON FUNCTION feed.due(integer), feed.waiting_statuses(integer), feed.drop_old(timestamptz, integer) TO stentor_gateway;
