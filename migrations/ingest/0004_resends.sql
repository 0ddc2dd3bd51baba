-- SPDX-License-Identifier: Apache-2.0
-- Failed mails that an event (ResendErrorEmail) had sent again. Which dead letter the event is about is decided once and written here
-- before anything is published, so the same event never takes a second dead letter, however late it comes again. The row also holds
-- who asked, and how far the resend has come: a sending that never happened is not on record.

CREATE TABLE ingest.resends (
    tenant_id       text COLLATE "C" NOT NULL,
    event_identity  text COLLATE "C" NOT NULL, -- of the event: its Nats-Msg-Id
    notification_id text COLLATE "C" NOT NULL,
    letter_sequence bigint           NOT NULL, -- of the dead letter in DEAD
    requested_by    text             NOT NULL, -- empty: the event does not say
    noted_at        timestamptz      NOT NULL DEFAULT now(),
    resent_at       timestamptz,               -- the dead letter is deleted, after its event was stored
    published_at    timestamptz,               -- its event is stored
    gone_at         timestamptz,               -- the dead letter was gone before: resent or dropped by another request
    PRIMARY KEY (tenant_id, event_identity)
);
CREATE INDEX resends_noted_at ON ingest.resends USING brin (noted_at);
SELECT stentor.isolate('ingest.resends');

GRANT SELECT, INSERT, UPDATE ON ingest.resends TO stentor_ingest;
GRANT SELECT ON ingest.resends TO stentor_cli;
