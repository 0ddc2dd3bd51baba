-- SPDX-License-Identifier: Apache-2.0
-- Rows that are shown as pending while their request is retried (a mapping's moment `retrying` may say so).

-- The transaction that wrote the row so. A row that still has this xmin is as it was written then, and no relay claims it.
ALTER TABLE stentor_outbox.requests ADD COLUMN row_xmin xid;
