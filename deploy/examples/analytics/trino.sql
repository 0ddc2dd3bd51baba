-- SPDX-License-Identifier: Apache-2.0
-- The facts in Trino, by the Hive connector (catalog `hive`). Put your bucket in place of s3://bucket/prefix.

CREATE SCHEMA IF NOT EXISTS hive.stentor WITH (location = 's3://bucket/prefix/facts/');

CREATE TABLE IF NOT EXISTS hive.stentor.notifications_facts (
    tenant_id VARCHAR,
    notification_id VARCHAR,
    created_at TIMESTAMP,
    channel VARCHAR,
    category VARCHAR,
    priority VARCHAR,
    status VARCHAR,
    reason_code VARCHAR,
    template VARCHAR,
    template_version VARCHAR,
    locale VARCHAR,
    batch_id VARCHAR,
    source VARCHAR,
    recipient_key VARCHAR,
    scheduled BOOLEAN,
    attempts INTEGER,
    vendor VARCHAR,
    queue_ms BIGINT,
    render_ms BIGINT,
    send_ms BIGINT,
    deliver_ms BIGINT,
    open_s BIGINT,
    click_s BIGINT,
    units INTEGER,
    cost_micros BIGINT,
    currency VARCHAR,
    cost_estimated BOOLEAN,
    tenant VARCHAR,
    day DATE
) WITH (format = 'PARQUET', external_location = 's3://bucket/prefix/facts/notifications_facts/', partitioned_by = ARRAY['tenant', 'day']);
-- After new days were written:
CALL hive.system.sync_partition_metadata('stentor', 'notifications_facts', 'ADD');

CREATE TABLE IF NOT EXISTS hive.stentor.delivery_attempts_facts (
    tenant_id VARCHAR,
    notification_id VARCHAR,
    created_at TIMESTAMP,
    attempt_number INTEGER,
    channel VARCHAR,
    vendor VARCHAR,
    outcome VARCHAR,
    code VARCHAR,
    enhanced_code VARCHAR,
    code_class VARCHAR,
    started_at TIMESTAMP,
    duration_ms BIGINT,
    was_unknown BOOLEAN,
    fallback BOOLEAN,
    retry_delay_s BIGINT,
    country VARCHAR,
    units INTEGER,
    cost_micros BIGINT,
    currency VARCHAR,
    segments INTEGER,
    minutes INTEGER,
    calling_code VARCHAR,
    price_category VARCHAR,
    cost_estimated BOOLEAN,
    tenant VARCHAR,
    day DATE
) WITH (format = 'PARQUET', external_location = 's3://bucket/prefix/facts/delivery_attempts_facts/', partitioned_by = ARRAY['tenant', 'day']);
-- After new days were written:
CALL hive.system.sync_partition_metadata('stentor', 'delivery_attempts_facts', 'ADD');

-- Cost by tenant, channel and vendor; with the partitions named, no other day is read.
SELECT tenant_id, channel, vendor, currency, count(*) AS attempts, sum(units) AS units,
       sum(CASE WHEN cost_micros IS NULL THEN units ELSE 0 END) AS unpriced, sum(cost_micros) / 1000000.0 AS cost
FROM hive.stentor.delivery_attempts_facts WHERE day BETWEEN DATE '2026-10-01' AND DATE '2026-10-31'
GROUP BY tenant_id, channel, vendor, currency ORDER BY 1, 2, 3;
