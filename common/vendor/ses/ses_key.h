// SPDX-License-Identifier: Apache-2.0
// What a credential's secret holds for SES: the secret access key, or a JSON object as an AWS
// `credential_process` prints it, for temporary credentials:
//   {"AccessKeyId": "ASIA...", "SecretAccessKey": "...", "SessionToken": "..."}
// Its AccessKeyId wins over the credential's id, since it changes with the secret. Other members
// (Version, Expiration) are passed over. Law: no error shows any of it.
// Source: docs.aws.amazon.com/cli, "Sourcing credentials with an external process".
#pragma once

#include "common/vendor/vendor_api.h"

enum { SES_SECRET_MAX = 16384 };

typedef struct SesKey {
    VendorAccount account; // with the id and the secret access key that sign
    Str token;             // of the session; empty: the key is a lasting one
} SesKey;

// Slices live in `arena` or are the account's. ERROR_CONFIG: a JSON object without its members.
bool ses_key_read(const VendorAccount *account, Arena *arena, SesKey *ret, Error *err);
