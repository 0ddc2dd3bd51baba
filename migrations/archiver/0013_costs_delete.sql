-- SPDX-License-Identifier: Apache-2.0
-- A price that was set by mistake can be deleted (stentor costs delete).
GRANT DELETE ON archive.unit_costs TO stentor_cli;
