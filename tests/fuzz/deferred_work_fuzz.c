// SPDX-License-Identifier: Apache-2.0
// links: svc_digest_flusher
// Any bytes as a Deferred: due work with everything that its row needs, or refused as PERMANENT.
#include <stdlib.h>
#include <string.h>

#include "services/digest-flusher/work.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena *arena = arena_new(0);
    DueWork work;
    Error err = {0};
    bool read = due_work_read(str_of(data, size), arena, &work, &err);
    bool goes_out =
        read && strlen(work.event_id) == EVENT_ID_LEN &&
        (strncmp(work.subject, "ntf.", 4) == 0 || strncmp(work.subject, "evt.", 4) == 0) &&
        work.due_at_us > 0 && work.payload.len > 0 &&
        (work.kind != WORK_GATHER || work.window != NULL);
    bool cancels =
        read && work.kind == WORK_CANCEL && work.cancel != NULL && work.cancel_key.len > 0;
    bool complete = read && work.work_id.len == EVENT_ID_LEN && (goes_out || cancels);
    if (read ? !complete : err.kind != ERROR_PERMANENT) {
        abort();
    }
    arena_free(arena);
    return 0;
}
