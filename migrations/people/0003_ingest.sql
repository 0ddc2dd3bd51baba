-- SPDX-License-Identifier: Apache-2.0
-- The fold writes a record's addresses as a whole: it deletes and inserts, and changes none.
REVOKE UPDATE ON people.addresses FROM stentor_ingest;
