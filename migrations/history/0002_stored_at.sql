-- SPDX-License-Identifier: Apache-2.0
-- When the message at a position was stored. A log that lost its tail (a power cut, a store restored from a copy) gives the
-- same sequence to another message; its time tells them apart. NULL: folded before this column was there.
ALTER TABLE history.positions ADD COLUMN stored_at timestamptz;
