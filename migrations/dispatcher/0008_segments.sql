-- SPDX-License-Identifier: Apache-2.0
-- What an attempt took at its vendor, as the vendor said in its answer: so a repeat of the status after a crash says the same.

ALTER TABLE dispatcher.ledger
    ADD segments    smallint CHECK (segments > 0), -- of an SMS; NULL: the vendor says none
    ADD cost_micros bigint   CHECK (cost_micros > 0), -- millionths of `currency`; NULL: the vendor says none
    ADD currency    text COLLATE "C" CHECK (length(currency) = 3); -- ISO 4217
