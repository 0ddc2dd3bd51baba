-- SPDX-License-Identifier: Apache-2.0
-- People at the console: one-time links that were made, and sessions. Of a link and of a cookie only the SHA-256 is here.
-- They are the installation's, not a tenant's: a session may have several. Who may see which is the API's to ask.

CREATE TABLE gateway.logins (
    token_hash bytea            PRIMARY KEY CHECK (length(token_hash) = 32), -- of a link, or of the state of a login at a provider that was used
    user_name  text             NOT NULL,
    role       text             NOT NULL, -- '': a state, which opens nothing
    tenants    text[]           NOT NULL,
    made_by    text             NOT NULL, -- "key <id>", "user <name>", "oidc"
    expires_at timestamptz      NOT NULL
);

CREATE TABLE gateway.sessions (
    token_hash   bytea            PRIMARY KEY CHECK (length(token_hash) = 32),
    id           text COLLATE "C" NOT NULL UNIQUE, -- "ses_...": what a list shows and a revocation names
    user_name    text             NOT NULL,
    role         text             NOT NULL,
    tenants      text[]           NOT NULL CHECK (cardinality(tenants) > 0),
    made_by      text             NOT NULL,
    made_at      timestamptz      NOT NULL DEFAULT now(),
    seen_at      timestamptz      NOT NULL DEFAULT now(), -- to the minute
    idle_seconds integer          NOT NULL CHECK (idle_seconds > 0),
    expires_at   timestamptz      NOT NULL
);

GRANT SELECT, INSERT, DELETE ON gateway.logins TO stentor_gateway;
GRANT SELECT, INSERT, UPDATE, DELETE ON gateway.sessions TO stentor_gateway;
-- ingest takes a session in place of a key, and makes none.
GRANT SELECT, UPDATE (seen_at) ON gateway.sessions TO stentor_ingest;
