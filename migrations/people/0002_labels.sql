-- SPDX-License-Identifier: Apache-2.0
-- What a tenant calls its recipients: labels, roles too ('admin'). Part of the record, as addresses are. Rows of their own and
-- no array in people.recipients: a label's recipients are read in the order of their ids, a page at a time, however many there are.

CREATE TABLE people.labels (
    tenant_id    text COLLATE "C" NOT NULL,
    recipient_id text COLLATE "C" NOT NULL,
    label        text COLLATE "C" NOT NULL,
    PRIMARY KEY (label, tenant_id, recipient_id)
);
CREATE INDEX labels_recipient ON people.labels (recipient_id, tenant_id);
SELECT stentor.isolate('people.labels');
GRANT SELECT, INSERT, DELETE ON people.labels TO stentor_ingest;
GRANT SELECT ON people.labels TO stentor_gateway, stentor_cli;

-- A tenant's recipients in the order of their ids, for the pages of a campaign. Its condition holds for every row and is written in
-- that query alone: so no look-up takes the index with the tenant alone (0001_people.sql).
CREATE INDEX recipients_in_order ON people.recipients (tenant_id, recipient_id) WHERE recipient_id <> '';
