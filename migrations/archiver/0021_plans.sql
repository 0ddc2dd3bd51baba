-- SPDX-License-Identifier: Apache-2.0
-- One plan for all calls of what GET /v1/notifications/{id} asks: making one looks at every partition of history, which took three quarters of
-- the time. The executor leaves out the other partitions before it begins. Where a row is looked up by its key, no other plan is right.
ALTER FUNCTION stentor.notification_shown(text, timestamptz, text) SET plan_cache_mode = force_generic_plan;
ALTER FUNCTION stentor.notification_shown(text, timestamptz, text) SET enable_seqscan = off;
ALTER FUNCTION stentor.notification_shown(text, timestamptz, text) SET enable_bitmapscan = off;
ALTER FUNCTION stentor.notification_attempts(text, timestamptz, text) SET plan_cache_mode = force_generic_plan;
ALTER FUNCTION stentor.notification_attempts(text, timestamptz, text) SET enable_seqscan = off;
ALTER FUNCTION stentor.notification_attempts(text, timestamptz, text) SET enable_bitmapscan = off;
