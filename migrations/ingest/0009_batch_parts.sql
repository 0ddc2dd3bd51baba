-- SPDX-License-Identifier: Apache-2.0
-- A part of a batch is written once: a repeat is known by its hash.
REVOKE UPDATE ON ingest.batch_parts FROM stentor_ingest;
