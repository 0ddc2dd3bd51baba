// SPDX-License-Identifier: Apache-2.0
// For the files of this folder that call OpenSSL: its functions fail only when OpenSSL itself is
// broken or out of memory, which no input can cause. Then the process ends, in every build: a hash
// or a seal that is not one must not go out.
#pragma once

#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>

static inline void evp_must(int ok)
{
    if (ok != 1) {
        fputs("stentor: OpenSSL failed\n", stderr);
        ERR_print_errors_fp(stderr);
        abort();
    }
}
