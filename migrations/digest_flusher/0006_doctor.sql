-- SPDX-License-Identifier: Apache-2.0
-- `stentor doctor` says of each projection how far it is. A position names nobody.
GRANT SELECT ON digest_flusher.positions TO stentor_cli;
