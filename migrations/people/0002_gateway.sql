-- SPDX-License-Identifier: Apache-2.0
-- gateway answers from these tables and waits for the position; ingest alone writes them, from PEOPLE.
GRANT USAGE ON SCHEMA people TO stentor_gateway;
GRANT SELECT ON people.recipients, people.addresses, people.preferences, people.consents, people.positions TO stentor_gateway;
