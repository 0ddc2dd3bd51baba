// SPDX-License-Identifier: Apache-2.0
// Certificates of erasure outside of the database: as objects, and on standard output.
#pragma once

#include "common/erasure/erasure_certificate.h"
#include "services/cli/cli.h"

// The key of STENTOR_ERASURE_KEY_FILE; *ret NULL: none is set. ERROR_CONFIG: it is none.
bool erase_key(Cli *cli, ErasureKey **ret, Error *err);

// Where STENTOR_STORAGE_URL is set: every certificate that is no object yet becomes one,
// erasure/<number>-<request>.json: a line with its text, a line with its signature.
bool certificates_store(Cli *cli, PGconn *pg, Error *err);
