-- SPDX-License-Identifier: Apache-2.0
-- Only the owner's functions call it (stentor/0003 says the same of all that are made later).
REVOKE ALL ON FUNCTION ingest.id_time(text) FROM PUBLIC;
