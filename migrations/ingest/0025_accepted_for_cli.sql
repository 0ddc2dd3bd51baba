-- SPDX-License-Identifier: Apache-2.0
-- `stentor status` of a notification that history does not have yet: the archiver holds a request back until its mail is sent.

GRANT EXECUTE ON FUNCTION ingest.accepted_events(text, timestamptz, text) TO stentor_cli;
