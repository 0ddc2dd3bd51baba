-- SPDX-License-Identifier: Apache-2.0
-- digest-flusher seals a recipient's address anew for the digest: it reads data keys, as the renderer does, and makes none.
GRANT USAGE ON SCHEMA keys TO stentor_digest_flusher;
GRANT SELECT ON keys.data_keys TO stentor_digest_flusher;
