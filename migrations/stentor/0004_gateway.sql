-- SPDX-License-Identifier: Apache-2.0
-- The role of gateway, which `stentor migrate --bootstrap` makes.
GRANT USAGE ON SCHEMA stentor TO stentor_gateway;
GRANT EXECUTE ON FUNCTION stentor.tenants() TO stentor_gateway;
