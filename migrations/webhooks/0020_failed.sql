-- SPDX-License-Identifier: Apache-2.0
-- Failed deliveries are listed, and posted again, without a look at those that went well.

CREATE INDEX deliveries_failed ON webhooks.deliveries (tenant_id, subscription_id, created_at, id) WHERE state = 'failed';
