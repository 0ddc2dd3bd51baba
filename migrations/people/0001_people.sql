-- SPDX-License-Identifier: Apache-2.0
-- People: recipients, their addresses, preferences and consents, as the gate and the API read them. Folded by ingest from
-- PEOPLE; of two events about the same part the later in the stream wins, which `sequence` says.
-- No index begins with the tenant: while the planner's figures are old (an import into empty tables) it would take such
-- an index for any look-up, with the tenant alone, and read all of the tenant's rows for each.

CREATE SCHEMA people;

CREATE TABLE people.recipients (
    tenant_id        text COLLATE "C" NOT NULL,
    recipient_id     text COLLATE "C" NOT NULL, -- rcp_
    identity_type    text COLLATE "C" CHECK (identity_type IN ('guest', 'user', 'vendor', 'anonymous')),
    identity_id      text COLLATE "C",
    name             bytea,                     -- packed stentor.v1.Sealed
    locale           text,
    time_zone        text,
    quiet_start      smallint,                  -- minutes of the local day; both null: the tenant's quiet hours
    quiet_end        smallint,
    minor            boolean          NOT NULL DEFAULT false,
    guardian_id      text COLLATE "C",
    guardian_routing text COLLATE "C" CHECK (guardian_routing IN ('none', 'copy', 'redirect')), -- null: the tenant's
    unsubscribed_at  timestamptz,               -- from everything but critical and security
    updated_at       timestamptz      NOT NULL,
    sequence         bigint           NOT NULL, -- of the record; 0: there is none, only an unsubscription
    unsubscribed_sequence bigint      NOT NULL DEFAULT 0,
    PRIMARY KEY (recipient_id, tenant_id)
);
CREATE INDEX recipients_identity ON people.recipients (identity_id, identity_type, tenant_id) WHERE identity_id IS NOT NULL;
SELECT stentor.isolate('people.recipients');

CREATE TABLE people.addresses (
    tenant_id    text COLLATE "C" NOT NULL,
    recipient_id text COLLATE "C" NOT NULL,
    channel      text COLLATE "C" NOT NULL CHECK (channel IN ('email', 'sms', 'whatsapp', 'push', 'inapp', 'voice', 'webhook')),
    address_hash bytea            NOT NULL,
    address      bytea            NOT NULL, -- packed stentor.v1.Sealed, for the recipient's id
    status       text COLLATE "C" NOT NULL CHECK (status IN ('active', 'suppressed', 'revoked')),
    verified     boolean          NOT NULL,
    is_primary   boolean          NOT NULL,
    label        text,
    position     smallint         NOT NULL, -- in the record
    PRIMARY KEY (recipient_id, tenant_id, channel, address_hash)
);
CREATE INDEX addresses_hash ON people.addresses (address_hash, tenant_id);
SELECT stentor.isolate('people.addresses');

CREATE TABLE people.preferences (
    tenant_id    text COLLATE "C" NOT NULL,
    recipient_id text COLLATE "C" NOT NULL,
    category     text COLLATE "C" NOT NULL CHECK (category IN ('any', 'transactional', 'operational', 'security', 'reminder', 'marketing',
                                          'system', 'academic', 'billing', 'social', 'compliance')),
    channel      text COLLATE "C" NOT NULL CHECK (channel IN ('any', 'email', 'sms', 'whatsapp', 'push', 'inapp', 'voice', 'webhook')),
    is_off       boolean          NOT NULL,
    frequency    text COLLATE "C" NOT NULL CHECK (frequency IN ('immediate', 'hourly', 'daily', 'weekly')),
    at_minute    smallint         NOT NULL,
    on_weekday   smallint         NOT NULL,
    is_cleared   boolean          NOT NULL,
    updated_at   timestamptz      NOT NULL,
    sequence     bigint           NOT NULL,
    PRIMARY KEY (recipient_id, tenant_id, category, channel)
);
SELECT stentor.isolate('people.preferences');

CREATE TABLE people.consents (
    tenant_id    text COLLATE "C" NOT NULL,
    recipient_id text COLLATE "C" NOT NULL,
    category     text COLLATE "C" NOT NULL CHECK (category IN ('any', 'transactional', 'operational', 'security', 'reminder', 'marketing',
                                          'system', 'academic', 'billing', 'social', 'compliance')),
    channel      text COLLATE "C" NOT NULL CHECK (channel IN ('any', 'email', 'sms', 'whatsapp', 'push', 'inapp', 'voice', 'webhook')),
    is_granted   boolean          NOT NULL,
    source       text,
    given_at     timestamptz      NOT NULL,
    sequence     bigint           NOT NULL,
    PRIMARY KEY (recipient_id, tenant_id, category, channel)
);
SELECT stentor.isolate('people.consents');

-- How far PEOPLE was folded, in the same transaction as the rows.
CREATE TABLE people.positions (
    projection        text        NOT NULL,
    stream            text        NOT NULL,
    sequence          bigint      NOT NULL,
    stream_created_at timestamptz NOT NULL,
    stored_at         timestamptz,
    PRIMARY KEY (projection, stream)
);

-- A log that lost its tail gives old numbers to new messages: what the lost ones wrote must not win over them. A definer function,
-- because it works across tenants; the projector calls it before the first flush after such a loss, with the first lost sequence.
CREATE FUNCTION people.forget_lost_tail(first_sequence bigint) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    UPDATE people.recipients SET sequence = least(sequence, first_sequence - 1),
        unsubscribed_sequence = least(unsubscribed_sequence, first_sequence - 1)
    WHERE sequence >= first_sequence OR unsubscribed_sequence >= first_sequence;
    UPDATE people.preferences SET sequence = first_sequence - 1 WHERE sequence >= first_sequence;
    UPDATE people.consents SET sequence = first_sequence - 1 WHERE sequence >= first_sequence;
$$;
GRANT EXECUTE ON FUNCTION people.forget_lost_tail(bigint) TO stentor_ingest;

GRANT USAGE ON SCHEMA people TO stentor_ingest, stentor_gateway, stentor_cli;
-- ingest alone writes, and a record's addresses as a whole: it deletes and inserts them, and changes none.
GRANT SELECT, INSERT, UPDATE, DELETE ON people.recipients, people.preferences, people.consents TO stentor_ingest;
GRANT SELECT, INSERT, DELETE ON people.addresses TO stentor_ingest;
GRANT SELECT, INSERT, UPDATE ON people.positions TO stentor_ingest;
GRANT SELECT ON people.recipients, people.addresses, people.preferences, people.consents, people.positions TO stentor_gateway, stentor_cli;
