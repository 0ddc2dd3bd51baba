-- SPDX-License-Identifier: Apache-2.0
-- What became of the mails of each vendor, counted by minute by all dispatchers together: how many it took, and what its callbacks said.
-- By it a vendor whose mails are not delivered counts as degraded. Rows of the last day; nothing in it is of a recipient.
CREATE TABLE dispatcher.vendor_outcomes (
    minute    timestamptz      NOT NULL,
    owner     text COLLATE "C" NOT NULL, -- whose credential it is: a tenant, or "platform"
    vendor    text COLLATE "C" NOT NULL,
    accepted  integer          NOT NULL CHECK (accepted >= 0),
    delivered integer          NOT NULL CHECK (delivered >= 0),
    failed    integer          NOT NULL CHECK (failed >= 0), -- bounced for now, or blocked
    ended     integer          NOT NULL CHECK (ended >= 0),  -- no fault of the vendor: a wrong address, the vendor's own list
    PRIMARY KEY (minute, owner, vendor)
) WITH (fillfactor = 50);

GRANT SELECT, INSERT, UPDATE, DELETE ON dispatcher.vendor_outcomes TO stentor_dispatcher;
