-- SPDX-License-Identifier: Apache-2.0
-- In order: by the last sign of a delivery those behind it know whether its event is still on its way, or is gone from the streams.

ALTER TABLE webhooks.deliveries ADD COLUMN seen_at timestamptz; -- when its event was last put back for a moment; null: it was not, for long
