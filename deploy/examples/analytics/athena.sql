-- SPDX-License-Identifier: Apache-2.0
-- The facts in Amazon Athena, with partition projection: a new day needs no command. Put your bucket in place of s3://bucket/prefix and your
-- tenants in place of acme.

CREATE DATABASE IF NOT EXISTS stentor;

CREATE EXTERNAL TABLE IF NOT EXISTS stentor.notifications_facts (
    tenant_id string,
    notification_id string,
    created_at timestamp,
    channel string,
    category string,
    priority string,
    status string,
    reason_code string,
    template string,
    template_version string,
    locale string,
    batch_id string,
    source string,
    recipient_key string,
    scheduled boolean,
    attempts int,
    vendor string,
    queue_ms bigint,
    render_ms bigint,
    send_ms bigint,
    deliver_ms bigint,
    open_s bigint,
    click_s bigint,
    units int,
    cost_micros bigint,
    currency string,
    cost_estimated boolean
)
PARTITIONED BY (tenant string, day string)
STORED AS PARQUET
LOCATION 's3://bucket/prefix/facts/notifications_facts/'
TBLPROPERTIES (
    'projection.enabled' = 'true',
    'projection.tenant.type' = 'enum',
    'projection.tenant.values' = 'acme',
    'projection.day.type' = 'date',
    'projection.day.range' = '2026-01-01,NOW',
    'projection.day.format' = 'yyyy-MM-dd',
    'storage.location.template' = 's3://bucket/prefix/facts/notifications_facts/tenant=${tenant}/day=${day}/'
);

CREATE EXTERNAL TABLE IF NOT EXISTS stentor.delivery_attempts_facts (
    tenant_id string,
    notification_id string,
    created_at timestamp,
    attempt_number int,
    channel string,
    vendor string,
    outcome string,
    code string,
    enhanced_code string,
    code_class string,
    started_at timestamp,
    duration_ms bigint,
    was_unknown boolean,
    fallback boolean,
    retry_delay_s bigint,
    country string,
    units int,
    cost_micros bigint,
    currency string,
    segments int,
    minutes int,
    calling_code string,
    price_category string,
    cost_estimated boolean
)
PARTITIONED BY (tenant string, day string)
STORED AS PARQUET
LOCATION 's3://bucket/prefix/facts/delivery_attempts_facts/'
TBLPROPERTIES (
    'projection.enabled' = 'true',
    'projection.tenant.type' = 'enum',
    'projection.tenant.values' = 'acme',
    'projection.day.type' = 'date',
    'projection.day.range' = '2026-01-01,NOW',
    'projection.day.format' = 'yyyy-MM-dd',
    'storage.location.template' = 's3://bucket/prefix/facts/delivery_attempts_facts/tenant=${tenant}/day=${day}/'
);

-- Cost by tenant, channel and vendor; with the partitions named, no other day is read.
SELECT tenant_id, channel, vendor, currency, count(*) AS attempts, sum(units) AS units,
       sum(CASE WHEN cost_micros IS NULL THEN units ELSE 0 END) AS unpriced, sum(cost_micros) / 1000000.0 AS cost
FROM stentor.delivery_attempts_facts WHERE day BETWEEN '2026-10-01' AND '2026-10-31'
GROUP BY tenant_id, channel, vendor, currency ORDER BY 1, 2, 3;
