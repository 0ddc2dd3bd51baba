-- SPDX-License-Identifier: Apache-2.0
-- What the API keeps of its callers. First: when an API key was last used, written once a minute by each process that takes keys.

CREATE SCHEMA gateway;

CREATE TABLE gateway.key_usage (
    tenant_id    text COLLATE "C" NOT NULL, -- the key's
    key_id       text COLLATE "C" NOT NULL,
    last_used_at timestamptz      NOT NULL,
    PRIMARY KEY (tenant_id, key_id)
) WITH (fillfactor = 50);
SELECT stentor.isolate('gateway.key_usage');

GRANT USAGE ON SCHEMA gateway TO stentor_gateway, stentor_ingest;
GRANT SELECT, INSERT, UPDATE ON gateway.key_usage TO stentor_gateway, stentor_ingest;
