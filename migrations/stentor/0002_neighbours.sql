-- SPDX-License-Identifier: Apache-2.0
-- The role of order-saga. (outbox-relay works in the application's database, with a role of the application's.)
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'stentor_order_saga') THEN
        CREATE ROLE stentor_order_saga LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS;
    END IF;
    GRANT USAGE ON SCHEMA stentor TO stentor_order_saga;
END
$$;
