-- SPDX-License-Identifier: Apache-2.0
-- Which keys of the master key file this installation works with. A check value is HKDF (master) or HMAC (hash) of the key
-- over a fixed text: it shows whether a file is the right one and helps nobody to find a key. `stentor migrate` writes here,
-- with the file at hand; every program that holds keys reads it before it works.
CREATE TABLE keys.master_keys (
    kind          text COLLATE "C" NOT NULL CHECK (kind IN ('master', 'hash')),
    key_id        bytea       NOT NULL CHECK (length(key_id) = 4), -- the first bytes of check_value
    check_value   bytea       NOT NULL CHECK (length(check_value) = 32),
    registered_at timestamptz NOT NULL DEFAULT now(),
    current_at    timestamptz NOT NULL DEFAULT now(), -- when `stentor migrate` first saw it in front of its kind; the latest is current
    retired_at    timestamptz,                        -- nothing hangs on it any more: a file need not hold it
    PRIMARY KEY (kind, key_id),
    CHECK (substr(check_value, 1, 4) = key_id)
);
GRANT SELECT ON keys.master_keys TO stentor_ingest, stentor_renderer, stentor_dispatcher, stentor_digest_flusher, stentor_order_saga,
    stentor_cli;

-- A wrapped key carries its form, and the kind and id of the key that wrapped it, before nonce, ciphertext and tag: 66 bytes
-- by a master key. 60 is the first form, without them. No row can break the wider rule, so none is looked at.
ALTER TABLE keys.data_keys DROP CONSTRAINT data_keys_wrapped_check,
    ADD CONSTRAINT data_keys_wrapped_check CHECK (length(wrapped) BETWEEN 60 AND 128) NOT VALID;
