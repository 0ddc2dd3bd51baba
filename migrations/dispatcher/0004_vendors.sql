-- SPDX-License-Identifier: Apache-2.0
-- Several vendors: a claim says at which vendor the mail is, so that a crash leaves an outcome that is unknown at a named vendor.
-- `vendor`, which was written with the outcome, is written with the claim now. It is NULL in an outcome that the dispatcher decided
-- itself, in a claim that leads to such an outcome, and in claims of earlier releases, whose vendor was "smtp".

ALTER TABLE dispatcher.ledger
    ADD credential  text, -- name of the vendor's credential; NULL: the vendor has none (smtp)
    ADD vendor_key  text, -- by which the vendor recognises a second call for the same claim; NULL: it knows no such keys
    -- What the vendor's answer was, where its code alone does not say it; NULL: accepted, no answer, or decided here.
    ADD reply_class text COLLATE "C" CHECK (reply_class IN ('retry', 'throttled', 'terminal', 'bad_address', 'config', 'elsewhere')),
    -- deferred: what the next attempt is for. NULL: the same vendor, or whichever its route says then.
    ADD next_step   text COLLATE "C" CHECK (next_step IN ('fallback', 'settle', 'asked', 'absent'));
