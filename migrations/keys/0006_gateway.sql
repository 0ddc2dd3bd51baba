-- SPDX-License-Identifier: Apache-2.0
-- gateway seals a recipient's record under the recipient's data key, and makes the key when there is none. It opens them when they are shown.
GRANT USAGE ON SCHEMA keys TO stentor_gateway;
GRANT SELECT, INSERT ON keys.data_keys TO stentor_gateway;
GRANT SELECT ON keys.master_keys TO stentor_gateway;
