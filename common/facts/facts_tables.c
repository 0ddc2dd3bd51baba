// SPDX-License-Identifier: Apache-2.0
#include "common/facts/facts_tables.h"

// clang-format off
#define WORD(n) {.name = n, .type = PARQUET_STRING, .encoding = PARQUET_DICTIONARY, .optional = true}
#define ID(n, found) {.name = n, .type = PARQUET_STRING, .bloom = found, .optional = !(found)}
#define TIME(n, first) {.name = n, .type = PARQUET_I64, .logical = PARQUET_TIME_US, .encoding = PARQUET_DELTA, .optional = !(first), .sorted = first}
#define NUMBER(n) {.name = n, .type = PARQUET_I64, .optional = true}
#define COUNT(n) {.name = n, .type = PARQUET_I32, .optional = true}
#define SMALL(n) {.name = n, .type = PARQUET_I32}
#define YES(n) {.name = n, .type = PARQUET_BOOL}
#define MAYBE(n) {.name = n, .type = PARQUET_BOOL, .optional = true}

static const ParquetColumn notifications[] = {
    WORD("tenant_id"), ID("notification_id", true), TIME("created_at", true), WORD("channel"), WORD("category"), WORD("priority"),
    WORD("status"), WORD("reason_code"), WORD("template"), WORD("template_version"), WORD("locale"), WORD("batch_id"), WORD("source"),
    ID("recipient_key", false), YES("scheduled"), SMALL("attempts"), WORD("vendor"), NUMBER("queue_ms"), NUMBER("render_ms"),
    NUMBER("send_ms"), NUMBER("deliver_ms"), NUMBER("open_s"), NUMBER("click_s"), SMALL("units"), NUMBER("cost_micros"), WORD("currency"),
    MAYBE("cost_estimated"),
};
static const ParquetColumn attempts[] = {
    WORD("tenant_id"), ID("notification_id", true), TIME("created_at", true), SMALL("attempt_number"), WORD("channel"), WORD("vendor"),
    WORD("outcome"), WORD("code"), WORD("enhanced_code"), WORD("code_class"), TIME("started_at", false), NUMBER("duration_ms"),
    YES("was_unknown"), YES("fallback"), NUMBER("retry_delay_s"), WORD("country"), SMALL("units"), NUMBER("cost_micros"), WORD("currency"),
    COUNT("segments"), COUNT("minutes"), WORD("calling_code"), WORD("price_category"), MAYBE("cost_estimated"),
};

const FactsTable facts_tables[] = {
    {"notifications_facts", "created_at, notification_id", notifications, sizeof notifications / sizeof notifications[0]},
    {"delivery_attempts_facts", "created_at, notification_id, attempt_number", attempts, sizeof attempts / sizeof attempts[0]},
};
// clang-format on
const size_t facts_table_count = sizeof facts_tables / sizeof facts_tables[0];
