// SPDX-License-Identifier: Apache-2.0
// Who a stream is for, asked again for as long as it goes on. A key is looked up in memory each
// time. A person's session stands in Postgres: the stream ends after a minute, its client comes
// back to where it was, and that call asks.
#pragma once

#include "common/api/api.h"

enum { STREAM_CALLER_PERSON_S = 60 };

typedef enum StreamStanding {
    STREAM_STANDS,
    STREAM_OVER,  // coming back would be refused
    STREAM_AGAIN, // the client comes back
} StreamStanding;

typedef struct StreamCaller {
    char key_id[64];
    Scope scope;
    int64_t until_us; // of a person; 0: a key
} StreamCaller;

void stream_caller_init(StreamCaller *caller, const ApiCall *call, int64_t now_us);
StreamStanding stream_caller_stands(const StreamCaller *caller, const Auth *auth, int64_t now_us);
