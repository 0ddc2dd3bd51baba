// SPDX-License-Identifier: Apache-2.0
// When certificates end.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"

// More certificates in one file are a list of public authorities, of which one always ends soon.
enum { TLS_EXPIRY_CERTIFICATES_MAX = 16 };

// The end of the first certificate of a PEM file that ends; *ret_us INT64_MAX: it holds more than
// TLS_EXPIRY_CERTIFICATES_MAX. ERROR_CONFIG: it cannot be read, or holds none.
bool tls_file_expiry(const char *path, int64_t *ret_us, Error *err);
