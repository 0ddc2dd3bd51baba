// SPDX-License-Identifier: Apache-2.0
#include "common/service/known_names.h"

// clang-format off
static const char *const names[] = { // a secret also has its NAME_FILE
    // every service
    "STENTOR_CREDENTIAL_DIRS",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_HEADERS_FILE",
    "OTEL_TRACES_SAMPLER",
    "OTEL_TRACES_SAMPLER_ARG",
    "OTEL_RESOURCE_ATTRIBUTES",
    "OTEL_SERVICE_NAME",
    "STENTOR_NATS_URL",
    "STENTOR_NATS_USER",
    "STENTOR_NATS_PASSWORD",
    "STENTOR_NATS_PASSWORD_FILE",
    "STENTOR_ADMIN_BIND",
    "STENTOR_ADMIN_PORT",
    "STENTOR_KEYS_DUMP_DAYS",
    "STENTOR_KEYS_DUMP_DIR",
    "STENTOR_LOG_KEPT",
    "STENTOR_LOG_LEVEL",
    "STENTOR_LOG_FORMAT",
    "STENTOR_LOG_OUTPUT",
    "STENTOR_LOG_NOTIFICATIONS",
    "STENTOR_DRAIN_MS",
    "STENTOR_CORE_DUMPS",
    "STENTOR_LOOP_LIMIT_MS",
    "STENTOR_DATABASE_URL",
    "STENTOR_DATABASE_URL_FILE",
    "STENTOR_DATABASE_CONNECTIONS",
    "STENTOR_DATABASE_NEWER",
    "STENTOR_MASTER_KEY_FILE",
    "STENTOR_EPOCH_DAYS",
    "STENTOR_EPOCH_KEEP_DAYS",
    "STENTOR_EPOCH_KEYS_DIR",
    "STENTOR_EPOCH_SETTLE_S",
    "STENTOR_CONSOLE_URL",
    "STENTOR_CONSOLE_SESSION_S",
    "STENTOR_CONSOLE_IDLE_S",
    // archiver
    "STENTOR_HISTORY_FLUSH_MAX",
    "STENTOR_HISTORY_FLUSH_MS",
    "STENTOR_RETENTION_SPANS",
    "STENTOR_CLEANUP_EVERY_S",
    "STENTOR_STORAGE_URL",
    "STENTOR_STORAGE_KEY_ID",
    "STENTOR_STORAGE_SECRET",
    "STENTOR_STORAGE_SECRET_FILE",
    "STENTOR_STORAGE_SESSION_TOKEN",
    "STENTOR_STORAGE_SESSION_TOKEN_FILE",
    "STENTOR_STORAGE_VENDOR",
    "STENTOR_CONTENT_KEPT",
    "STENTOR_CALLBACKS_KEPT",
    "STENTOR_ARCHIVE_SPOOL_DIR",
    "STENTOR_ARCHIVE_PART_KIB",
    "STENTOR_ARCHIVE_PART_ROWS",
    "STENTOR_ARCHIVE_QUIET_HOURS",
    "STENTOR_FACTS",
    "STENTOR_ARCHIVE_GRACE_S",
    "STENTOR_ARCHIVE_EVERY_S",
    "STENTOR_ARCHIVE_COLD_CLASS",
    "STENTOR_SEGMENT_SPOOL_DIR",
    "STENTOR_SEGMENT_MIB",
    "STENTOR_SEGMENT_S",
    "STENTOR_GUARD_BOUNCES_WARN",
    "STENTOR_GUARD_BOUNCES_PAUSE",
    "STENTOR_GUARD_COMPLAINTS_WARN",
    "STENTOR_GUARD_COMPLAINTS_PAUSE",
    "STENTOR_GUARD_MIN_SENDS",
    "STENTOR_GUARD_EVERY_S",
    // cli
    "STENTOR_SUPERUSER_URL",
    "STENTOR_SUPERUSER_URL_FILE",
    "STENTOR_API_URL",
    "STENTOR_API_KEY",
    "STENTOR_API_KEY_FILE",
    "STENTOR_API_CA_FILE",
    "STENTOR_TENANT",
    "STENTOR_ERASURE_KEY_FILE",
    "STENTOR_EVENTS_SEALED",
    "STENTOR_LEGAL_DUTY",
    "STENTOR_HOME",
    // digest-flusher
    "STENTOR_FLUSHER_LEASE_MS",
    "STENTOR_TRIM_MS",
    "STENTOR_FIGURES_MS",
    // dispatcher
    "STENTOR_SMTP_URL",
    "STENTOR_SMTP_URL_FILE",
    "STENTOR_SMTP_PASSWORD",
    "STENTOR_SMTP_PASSWORD_FILE",
    "STENTOR_SMTP_TLS",
    "STENTOR_SMTP_CA_FILE",
    "STENTOR_SMTP_HELO",
    "STENTOR_SMTP_CONNECTIONS",
    "STENTOR_SMTP_MAILS",
    "STENTOR_SMTP_CONNECT_MS",
    "STENTOR_SMTP_COMMAND_MS",
    "STENTOR_SMTP_DATA_MS",
    "STENTOR_SMTP_IDLE_MS",
    "STENTOR_SMTP_RATE_PER_S",
    "STENTOR_SMTP_RATE_PER_DAY",
    "STENTOR_MAIL_FEEDBACK_SENDER",
    "STENTOR_GATEWAY_ATTACHMENT_MAX",
    "STENTOR_GATEWAY_ATTACHMENT_PLACES",
    "STENTOR_INGEST_ATTACHMENTS_MAX",
    "STENTOR_MAIL_FROM",
    "STENTOR_MAIL_DOMAIN",
    "STENTOR_DISPATCHER_TENANT_PERCENT",
    "STENTOR_DISPATCHER_UNKNOWN",
    "STENTOR_RETRY_LADDER",
    "STENTOR_DISPATCHER_LEASE_MS",
    "STENTOR_DISPATCHER_BATCH",
    "STENTOR_DISPATCHER_IN_FLIGHT",
    "STENTOR_DISPATCHER_KEPT_DAYS",
    "STENTOR_DISPATCHER_KEEP_FOREIGN",
    "STENTOR_DISPATCHER_LATE_S",
    // dispatcher --channels webhook
    "STENTOR_CHANNELS",
    "STENTOR_WEBHOOK_LADDER",
    "STENTOR_WEBHOOK_ADDRESSES",
    "STENTOR_WEBHOOK_CA_FILE",
    "STENTOR_WEBHOOK_DNS",
    "STENTOR_WEBHOOK_CALLS",
    "STENTOR_WEBHOOK_CALL_MS",
    "STENTOR_WEBHOOK_QUEUE_MS",
    "STENTOR_WEBHOOK_LEASE_MS",
    "STENTOR_WEBHOOK_GONE_S",
    "STENTOR_WEBHOOK_IN_FLIGHT",
    "STENTOR_WEBHOOK_KEPT_DAYS",
    "STENTOR_VENDOR_ADDRESSES",
    "STENTOR_VENDOR_CALLS",
    "STENTOR_VENDOR_CALL_MS",
    "STENTOR_VENDOR_CA_FILE",
    "STENTOR_VENDOR_CONNECT_MS",
    // gateway
    "STENTOR_GATEWAY_BIND",
    "STENTOR_GATEWAY_PORT",
    "STENTOR_GATEWAY_BODY_MAX",
    "STENTOR_GATEWAY_PREVIEW_CPU_MS",
    "STENTOR_GATEWAY_TENANT_MEMBERS",
    "STENTOR_GATEWAY_FIND",
    "STENTOR_GATEWAY_FIND_DATABASE_URL",
    "STENTOR_GATEWAY_FIND_DAYS",
    "STENTOR_GATEWAY_READ_DATABASE_URL",
    "STENTOR_GATEWAY_CONNECTIONS",
    "STENTOR_GATEWAY_CLIENT_CONNECTIONS",
    "STENTOR_GATEWAY_TRUSTED_PROXIES",
    "STENTOR_GATEWAY_HEAD_MS",
    "STENTOR_GATEWAY_REQUEST_MS",
    "STENTOR_GATEWAY_BODIES_BYTES",
    "STENTOR_GATEWAY_INBOX_ORIGINS",
    "STENTOR_GATEWAY_INBOX_DEMO",
    "STENTOR_GATEWAY_KEY_LEASE_MS",
    "STENTOR_GATEWAY_TENANT_REQUESTS",
    "STENTOR_GATEWAY_KEY_REQUESTS",
    "STENTOR_GATEWAY_ACCESS_LOG",
    // ingest
    "STENTOR_INGEST_BIND",
    "STENTOR_INGEST_PORT",
    "STENTOR_INGEST_BODY_MAX",
    "STENTOR_INGEST_CHANNELS",
    "STENTOR_INGEST_CONNECTIONS",
    "STENTOR_INGEST_CLIENT_CONNECTIONS",
    "STENTOR_INGEST_TRUSTED_PROXIES",
    "STENTOR_INGEST_HEAD_MS",
    "STENTOR_INGEST_REQUEST_MS",
    "STENTOR_INGEST_BODIES_BYTES",
    "STENTOR_INGEST_ACCESS_LOG",
    "STENTOR_INGEST_SWEEP_MS",
    "STENTOR_INGEST_RESEAL_MS",
    "STENTOR_INGEST_SWEEP_AGE_MS",
    "STENTOR_INGEST_UNKNOWN_TENANTS",
    "STENTOR_INGEST_BATCH_LEASE_MS",
    "STENTOR_INGEST_KEPT_DAYS",
    "STENTOR_CANARY_S",
    "STENTOR_RETENTION_CLASSES",
    "STENTOR_TENANT_SHARE",
    // order-saga
    "STENTOR_SAGA_RETRY_TIMEOUT_MS",
    "STENTOR_SAGA_MAX_ATTEMPTS",
    "STENTOR_SAGA_LOST_WAIT_MS",
    "STENTOR_SAGA_STALLED_S",
    "STENTOR_SAGA_KPI_MS",
    "STENTOR_SAGA_SWEEP_MS",
    "STENTOR_SAGA_SWEEP_AGE_MS",
    "STENTOR_SAGA_CLEAN_UP_S",
    "STENTOR_SAGA_OUTBOX_DAYS",
    "STENTOR_SAGA_INBOX_DAYS",
    "STENTOR_SAGA_ARCHIVE_DAYS",
    "STENTOR_SAGA_DROP_DAYS",
    // outbox-relay
    "STENTOR_OUTBOX_BATCH",
    "STENTOR_OUTBOX_BATCHES",
    "STENTOR_OUTBOX_KEEP_MS",
    "STENTOR_OUTBOX_LEASE_MS",
    "STENTOR_OUTBOX_MAPPING",
    "STENTOR_OUTBOX_NATS_DOMAIN",
    "STENTOR_OUTBOX_POLL_MS",
    "STENTOR_OUTBOX_TENANTS",
    // renderer
    "STENTOR_RENDERER_BATCH",
    "STENTOR_RENDERER_CPU_MS",
    "STENTOR_RENDERER_IN_FLIGHT",
    "STENTOR_RENDERER_TEMPLATES",
    "STENTOR_RENDERER_PUBLIC_URL",
    // webhook-receiver
    "STENTOR_WEBHOOK_BIND",
    "STENTOR_WEBHOOK_PORT",
    "STENTOR_WEBHOOK_BODY_MAX",
    "STENTOR_WEBHOOK_CONNECTIONS",
    "STENTOR_WEBHOOK_CLIENT_CONNECTIONS",
    "STENTOR_WEBHOOK_TRUSTED_PROXIES",
    "STENTOR_WEBHOOK_HEAD_MS",
    "STENTOR_WEBHOOK_REQUEST_MS",
    "STENTOR_WEBHOOK_BODIES_BYTES",
    "STENTOR_WEBHOOK_MACHINE_S",
    "STENTOR_WEBHOOK_MAX_AGE_S",
    "STENTOR_LMTP_BIND",
    "STENTOR_LMTP_PORT",
    "STENTOR_LMTP_ADDRESSES",
    "STENTOR_LMTP_CONNECTIONS",
    "STENTOR_WEBHOOK_SNS_ORIGIN",
    // what is no row of a table: the command line's file, the scripts' and the tests' own
    "STENTOR_CONFIG",
    "STENTOR_DATA",
    "STENTOR_BIN",
    "STENTOR_CHAOS_RATE",
    "STENTOR_TEST_DATABASE_URL",
    "STENTOR_TEST_KEEP",
    "STENTOR_TEST_NATS_URL",
#ifdef STENTOR_CRASH_POINTS
    "STENTOR_CRASH_AT",
    "STENTOR_CRASH_ON",
    "STENTOR_CRASH_AFTER_MS",
    "STENTOR_HANG_ON",
#endif
};
// clang-format on
enum { NAMES = sizeof names / sizeof *names };

bool known_name(Str name)
{
    for (size_t i = 0; i < NAMES; i++) {
        if (str_eq(name, str_from(names[i]))) {
            return true;
        }
    }
    return false;
}

const char *known_name_nearest(Str name)
{
    const char *nearest = NULL;
    size_t least = name.len / 4; // beyond it the names have little more than STENTOR_ in common
    for (size_t i = 0; i < NAMES; i++) {
        size_t d = str_distance(name, str_from(names[i]));
        if (d < least) {
            least = d;
            nearest = names[i];
        }
    }
    return nearest;
}

// ---- Kubernetes ----

static bool is_protocol(Str s)
{
    return str_eq(s, STR("TCP")) || str_eq(s, STR("UDP")) || str_eq(s, STR("SCTP"));
}

// "8080_TCP", "8080_TCP_ADDR" ...
static bool is_port_form(Str s)
{
    Str port, protocol, part;
    int64_t number;
    if (!str_split(&s, '_', &port) || !str_to_i64(port, &number) ||
        !str_split(&s, '_', &protocol) || !is_protocol(protocol)) {
        return false;
    }
    return !str_split(&s, '_', &part) ||
           (s.ptr == NULL &&
            (str_eq(part, STR("ADDR")) || str_eq(part, STR("PORT")) || str_eq(part, STR("PROTO"))));
}

size_t kubernetes_service(Str name)
{
    static const Str host = {"_SERVICE_HOST", 13}, port = {"_PORT", 5};
    static const Str service_port = {"_SERVICE_PORT", 13};
    if (str_ends(name, host)) {
        return name.len - host.len;
    }
    for (size_t at = 1; at < name.len; at++) {
        Str rest = str_slice(name, at, name.len);
        if (str_starts(rest, service_port) &&
            (rest.len == service_port.len || rest.ptr[service_port.len] == '_')) {
            return at;
        }
        if (str_starts(rest, port) &&
            (rest.len == port.len || (rest.ptr[port.len] == '_' &&
                                      is_port_form(str_slice(rest, port.len + 1, rest.len))))) {
            return at;
        }
    }
    return 0;
}
