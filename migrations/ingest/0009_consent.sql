-- SPDX-License-Identifier: Apache-2.0
-- The caller's word on consent for the members of a batch that bring none of their own: where and when it was given.

ALTER TABLE ingest.batches ADD COLUMN consent_source text, ADD COLUMN consent_at timestamptz,
    ADD CHECK ((consent_source IS NULL) = (consent_at IS NULL));
