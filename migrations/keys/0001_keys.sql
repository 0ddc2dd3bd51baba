-- SPDX-License-Identifier: Apache-2.0
-- One data key per recipient, wrapped by the master key. Erasing a recipient is: wrapped = NULL, destroyed_at = now().

CREATE SCHEMA keys;

CREATE TABLE keys.data_keys (
    tenant_id    text COLLATE "C" NOT NULL,
    subject      bytea            NOT NULL CHECK (length(subject) = 16), -- keyed hash of tenant and recipient or address
    generation   integer          NOT NULL CHECK (generation > 0),
    -- Form, kind and id of the wrapping key before nonce, ciphertext and tag: 66 bytes by a master key. 60: the first form, without them.
    wrapped      bytea            CHECK (length(wrapped) BETWEEN 60 AND 128),
    created_at   timestamptz      NOT NULL DEFAULT now(),
    destroyed_at timestamptz,
    PRIMARY KEY (subject, generation),
    CHECK ((wrapped IS NULL) = (destroyed_at IS NOT NULL))
);
-- By form, kind and id of the wrapping key; null: the first form, which does not say.
CREATE INDEX data_keys_wrapper ON keys.data_keys ((CASE WHEN length(wrapped) <> 60 THEN substr(wrapped, 1, 6) END)) WHERE wrapped IS NOT NULL;
SELECT stentor.isolate('keys.data_keys');

-- Which keys of the master key file this installation works with. A check value is HKDF (master) or HMAC (hash) of the key
-- over a fixed text: it shows whether a file is the right one and helps no reader to find a key. `stentor migrate` writes here,
-- with the file at hand; every program that holds keys reads it before it works.
CREATE TABLE keys.master_keys (
    kind          text COLLATE "C" NOT NULL CHECK (kind IN ('master', 'hash')),
    key_id        bytea       NOT NULL CHECK (length(key_id) = 4), -- the first bytes of check_value
    check_value   bytea       NOT NULL CHECK (length(check_value) = 32),
    registered_at timestamptz NOT NULL DEFAULT now(),
    current_at    timestamptz NOT NULL DEFAULT now(), -- when `stentor migrate` first saw it in front of its kind; the latest is current
    retired_at    timestamptz,                        -- it wraps nothing any more: a file need not hold it
    PRIMARY KEY (kind, key_id),
    CHECK (substr(check_value, 1, 4) = key_id)
);

GRANT USAGE ON SCHEMA keys TO stentor_ingest, stentor_gateway, stentor_renderer, stentor_dispatcher, stentor_digest_flusher,
    stentor_order_saga, stentor_cli;
-- ingest, gateway and order-saga seal under a recipient's key: the first of them that sees an address makes its key, and erasing the
-- recipient erases it for all. The others only open.
GRANT SELECT, INSERT ON keys.data_keys TO stentor_ingest, stentor_gateway, stentor_order_saga;
GRANT SELECT ON keys.data_keys TO stentor_renderer, stentor_dispatcher, stentor_digest_flusher, stentor_cli;
GRANT SELECT ON keys.master_keys TO stentor_ingest, stentor_gateway, stentor_renderer, stentor_dispatcher, stentor_digest_flusher,
    stentor_order_saga, stentor_cli;
