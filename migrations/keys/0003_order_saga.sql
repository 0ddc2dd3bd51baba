-- SPDX-License-Identifier: Apache-2.0
-- order-saga seals who placed an order under the key of their address, as ingest does for an inline address: whichever of
-- the two sees an address first makes its key, and erasing the person erases it in both.
GRANT USAGE ON SCHEMA keys TO stentor_order_saga;
GRANT SELECT, INSERT ON keys.data_keys TO stentor_order_saga;
