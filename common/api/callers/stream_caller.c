// SPDX-License-Identifier: Apache-2.0
#include "common/api/callers/stream_caller.h"

void stream_caller_init(StreamCaller *caller, const ApiCall *call, int64_t now_us)
{
    *caller = (StreamCaller){.scope = call->route->scope};
    size_t room = sizeof caller->key_id - 1;
    (void)str_to_c(str_slice(call->key_id, 0, room), caller->key_id, sizeof caller->key_id);
    if (call->person) {
        caller->until_us = now_us + STREAM_CALLER_PERSON_S * INT64_C(1000000);
    }
}

StreamStanding stream_caller_stands(const StreamCaller *caller, const Auth *auth, int64_t now_us)
{
    if (caller->until_us != 0) {
        return now_us < caller->until_us ? STREAM_STANDS : STREAM_AGAIN;
    }
    bool holds = auth_holds(auth, str_from(caller->key_id), caller->scope, now_us);
    return holds ? STREAM_STANDS : STREAM_OVER;
}
