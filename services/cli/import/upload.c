// SPDX-License-Identifier: Apache-2.0
#include "services/cli/import/upload.h"

#include <time.h>

#include "common/base/clock.h"

enum { RETRY_MS = 500 };

bool upload_part(
    ApiClient *client, const char *method, const char *path, Str body, int64_t patience_s,
    ApiAnswer *ret, Error *err)
{
    int64_t give_up_us = clock_mono_us() + patience_s * 1000000;
    for (;;) {
        bool answered = api_client_call(client, method, path, body, ret, err);
        if (answered && ret->status == 200) {
            return true;
        }
        if (answered) {
            (void)api_client_explain(client, ret, err);
        }
        if (err->kind != ERROR_TRANSIENT || clock_mono_us() > give_up_us) {
            return false;
        }
        struct timespec pause = {.tv_nsec = RETRY_MS * 1000000L};
        (void)nanosleep(&pause, NULL);
    }
}
