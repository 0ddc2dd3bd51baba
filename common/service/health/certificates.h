// SPDX-License-Identifier: Apache-2.0
// stentor_tls_certificate_expiry_seconds: how long the certificates that this process reads from
// files are good. Which files: every option NAME_CA_FILE, sslcert and sslrootcert of every option
// NAME_DATABASE_URL (so a new option of these names is watched by itself), and SSL_CERT_FILE.
#pragma once

#include <stddef.h>

#include "common/service/metrics.h"
#include "common/service/options.h"

typedef struct Certificates Certificates;

// A file and the option that names it: "STENTOR_SMTP_CA_FILE", "STENTOR_DATABASE_URL sslrootcert".
// again: every connection reads it. All are borrowed.
typedef void (*CertificateEach)(void *ctx, const char *setting, const char *path, bool again);
void certificates_each(
    const Option *rows, size_t count, const void *values, CertificateEach each, void *ctx);

// Registers a gauge for each file that the options name; borrows the metrics. What cannot be read
// is in the log, and has none: who uses the file fails by it.
Certificates *certificates_watch(
    Metrics *metrics, const Option *rows, size_t count, const void *values);
void certificates_free(Certificates *certificates); // after the metrics; NULL-safe
