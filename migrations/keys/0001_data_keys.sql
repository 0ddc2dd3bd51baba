-- SPDX-License-Identifier: Apache-2.0
-- One data key per recipient, wrapped by the master key. Erasing a person is: wrapped = NULL, destroyed_at = now().

CREATE SCHEMA IF NOT EXISTS keys;

CREATE TABLE keys.data_keys (
    tenant_id    text COLLATE "C" NOT NULL,
    subject      bytea            NOT NULL CHECK (length(subject) = 16), -- keyed hash of tenant and recipient or address
    generation   integer          NOT NULL CHECK (generation > 0),
    wrapped      bytea            CHECK (length(wrapped) = 60),
    created_at   timestamptz      NOT NULL DEFAULT now(),
    destroyed_at timestamptz,
    PRIMARY KEY (subject, generation),
    CHECK ((wrapped IS NULL) = (destroyed_at IS NOT NULL))
);
SELECT stentor.isolate('keys.data_keys');

GRANT USAGE ON SCHEMA keys TO stentor_ingest, stentor_renderer, stentor_dispatcher, stentor_cli;
GRANT SELECT, INSERT ON keys.data_keys TO stentor_ingest;
GRANT SELECT ON keys.data_keys TO stentor_renderer, stentor_dispatcher, stentor_cli;
