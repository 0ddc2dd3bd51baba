-- SPDX-License-Identifier: Apache-2.0
-- The facts in DuckDB. Before this file, name where they are (a folder, or s3://bucket/prefix/facts with DuckDB's extension httpfs):
--   SET VARIABLE facts = '/var/lib/stentor/objects/facts';
--   SET VARIABLE invoices = '/path/invoices.csv';  -- head: day,channel,vendor,tenant,amount,currency; a file with the head alone will do

CREATE OR REPLACE VIEW notifications_facts AS
    SELECT * FROM read_parquet(getvariable('facts') || '/notifications_facts/*/*/*.parquet',
                               hive_partitioning = true, hive_types = {'tenant': VARCHAR, 'day': DATE}, union_by_name = true);
CREATE OR REPLACE VIEW delivery_attempts_facts AS
    SELECT * FROM read_parquet(getvariable('facts') || '/delivery_attempts_facts/*/*/*.parquet',
                               hive_partitioning = true, hive_types = {'tenant': VARCHAR, 'day': DATE}, union_by_name = true);
CREATE OR REPLACE VIEW invoices AS
    SELECT * FROM read_csv(getvariable('invoices'), header = true, columns = {
        'day': 'DATE', 'channel': 'VARCHAR', 'vendor': 'VARCHAR', 'tenant': 'VARCHAR', 'amount': 'DECIMAL(18,6)', 'currency': 'VARCHAR'});

-- Cost model, version 1, as archive.cost_model_v1 in Postgres: an invoice for all tenants is shared out by what each one's attempts cost.
CREATE OR REPLACE VIEW cost_model_v1 AS
    WITH used AS (
        SELECT coalesce(started_at, created_at)::TIMESTAMP::DATE AS day, tenant_id AS tenant, channel, vendor, max(currency) AS currency,
               count(*) AS attempts, sum(units)::BIGINT AS units, coalesce(sum(units) FILTER (WHERE cost_micros IS NULL), 0)::BIGINT AS unpriced,
               coalesce(sum(cost_micros), 0)::BIGINT AS cost_micros
        FROM delivery_attempts_facts GROUP BY ALL
    ), shares AS (
        SELECT *, CASE WHEN sum(cost_micros) OVER w > 0 THEN cost_micros / sum(cost_micros) OVER w
                       WHEN sum(units) OVER w > 0 THEN units / sum(units) OVER w ELSE 1 / count(*) OVER w END AS share
        FROM used WINDOW w AS (PARTITION BY day, channel, vendor)
    ), billed AS (
        SELECT s.*, coalesce(own.currency, every.currency) AS billed_in,
               coalesce(own.amount * 1000000, round(every.amount * 1000000 * s.share))::BIGINT AS invoice_micros
        FROM shares s
        LEFT JOIN invoices own ON own.day = s.day AND own.channel = s.channel AND own.vendor = s.vendor AND own.tenant = s.tenant
        LEFT JOIN invoices every ON every.day = s.day AND every.channel = s.channel AND every.vendor = s.vendor AND every.tenant = '*'
    )
    SELECT day, tenant, channel, vendor, coalesce(currency, billed_in) AS currency, attempts, units, unpriced, cost_micros, invoice_micros,
           CASE WHEN currency = billed_in THEN invoice_micros - cost_micros END AS difference_micros
    FROM billed;

-- name: delivered by day and channel
SELECT day, channel, count(*) AS notifications, count(*) FILTER (WHERE status IN ('delivered', 'opened', 'clicked')) AS delivered,
       count(*) FILTER (WHERE status = 'bounced') AS bounced, round(100.0 * avg((open_s IS NOT NULL)::INT), 1) AS opened_percent
FROM notifications_facts GROUP BY ALL ORDER BY ALL;

-- name: how long it took
SELECT channel, quantile_cont(queue_ms + render_ms + send_ms, 0.5)::BIGINT AS p50_ms, quantile_cont(queue_ms + render_ms + send_ms, 0.99)::BIGINT AS p99_ms
FROM notifications_facts WHERE send_ms IS NOT NULL GROUP BY ALL ORDER BY ALL;

-- name: why vendors refused
SELECT vendor, outcome, code_class, count(*) AS attempts FROM delivery_attempts_facts WHERE units = 0 GROUP BY ALL ORDER BY attempts DESC, vendor;

-- name: cost by tenant and month
SELECT tenant_id, strftime(created_at::TIMESTAMP, '%Y-%m') AS month, currency, sum(cost_micros) / 1000000 AS cost, sum(units)::BIGINT AS units
FROM delivery_attempts_facts WHERE units > 0 GROUP BY ALL ORDER BY ALL;

-- name: cost model
SELECT * FROM cost_model_v1 ORDER BY day, tenant, channel, vendor;
