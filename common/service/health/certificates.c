// SPDX-License-Identifier: Apache-2.0
#include "common/service/health/certificates.h"

#include <libpq-fe.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/tls/tls_expiry.h"

enum { WATCHED_MAX = 16, LABELS_SIZE = 128 };

#define AGAIN_US (INT64_C(3600) * 1000000)

typedef struct Watched {
    char *path;
    bool again;         // every connection reads the file: so does the gauge, once an hour
    int64_t read_at_us; // the last time
    int64_t end_us;     // of the first certificate that ends
} Watched;

struct Certificates {
    Metrics *metrics;
    Watched files[WATCHED_MAX];
    size_t count;
};

// ---- which files ----

static void each_of_database(const char *setting, const char *url, CertificateEach each, void *ctx)
{
    char name[LABELS_SIZE];
    PQconninfoOption *parts = PQconninfoParse(url, NULL);
    for (PQconninfoOption *part = parts; part != NULL && part->keyword != NULL; part++) {
        bool file =
            strcmp(part->keyword, "sslcert") == 0 || strcmp(part->keyword, "sslrootcert") == 0;
        if (file && part->val != NULL && part->val[0] != '\0' && strcmp(part->val, "system") != 0) {
            snprintf(name, sizeof name, "%s %s", setting, part->keyword);
            each(ctx, name, part->val, true);
        }
    }
    PQconninfoFree(parts);
}

void certificates_each(
    const Option *rows, size_t count, const void *values, CertificateEach each, void *ctx)
{
    const char *trusted = getenv("SSL_CERT_FILE"); // OpenSSL reads it, for NATS too
    if (trusted != NULL && trusted[0] != '\0') {
        each(ctx, "SSL_CERT_FILE", trusted, false);
    }
    for (size_t i = 0; i < count; i++) {
        Str name = str_from(rows[i].name);
        const char *value = NULL;
        if (rows[i].type == OPTION_TEXT) {
            memcpy(&value, (const char *)values + rows[i].offset, sizeof value);
        }
        if (value == NULL || value[0] == '\0') {
            continue;
        }
        if (str_ends(name, STR("_CA_FILE"))) {
            each(ctx, rows[i].name, value, false);
        } else if (str_ends(name, STR("_DATABASE_URL"))) {
            each_of_database(rows[i].name, value, each, ctx);
        }
    }
}

// ---- gauges ----

static double read_left(void *ctx)
{
    Watched *watched = ctx;
    Error ignored = {0}; // a file that is just being replaced: as it was before
    int64_t now_us = clock_now_us();
    if (watched->again && now_us - watched->read_at_us >= AGAIN_US) {
        watched->read_at_us = now_us;
        (void)tls_file_expiry(watched->path, &watched->end_us, &ignored);
    }
    return watched->end_us == INT64_MAX ? (double)INFINITY
                                        : (double)(watched->end_us - now_us) / 1e6;
}

static void watch(void *ctx, const char *setting, const char *path, bool again)
{
    Certificates *all = ctx;
    Error err = {0};
    char labels[LABELS_SIZE];
    int64_t end_us = 0;
    if (all->count == WATCHED_MAX) {
        return;
    }
    if (!tls_file_expiry(path, &end_us, &err)) {
        LOG(LOG_WARN, "when a certificate ends is not known", log_text("setting", setting),
            log_error(&err));
        return;
    }
    Watched *watched = &all->files[all->count++];
    *watched = (Watched){xstrdup(path), again, clock_now_us(), end_us};
    snprintf(labels, sizeof labels, "setting=\"%s\"", setting);
    metrics_gauge_fn(
        all->metrics, "stentor_tls_certificate_expiry_seconds", labels,
        "How long the certificates of a file are good, the first that ends; +Inf: a list of many",
        read_left, watched);
}

Certificates *certificates_watch(
    Metrics *metrics, const Option *rows, size_t count, const void *values)
{
    Certificates *all = xcalloc(1, sizeof *all);
    all->metrics = metrics;
    certificates_each(rows, count, values, watch, all);
    return all;
}

void certificates_free(Certificates *certificates)
{
    if (certificates != NULL) {
        for (size_t i = 0; i < certificates->count; i++) {
            free(certificates->files[i].path);
        }
        free(certificates);
    }
}
