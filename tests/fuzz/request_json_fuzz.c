// SPDX-License-Identifier: Apache-2.0
// links: svc_ingest
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "services/ingest/intake/commands.h"
#include "services/ingest/intake/request_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const int64_t NOW_US = INT64_C(1795199136000000);

// What was taken holds no control character where a header could be made of it, and an e-mail
// address one '@'.
static void check_request(const Request *r)
{
    assert(r->to.len > 0 || r->recipient_id.len > 0);
    assert(!str_has_control(r->to) && str_is_utf8(r->to));
    assert(r->to.len == 0 || memchr(r->to.ptr, ' ', r->to.len) == NULL);
    bool email = r->channel == CHANNEL_EMAIL && r->to.len > 0;
    assert(!email || memchr(r->to.ptr, '@', r->to.len) != NULL);
    assert(!str_has_control(r->to_name) && r->to_name.len <= REQUEST_NAME_MAX);
    assert(!str_has_control(r->correlation_id) && r->template_key.len <= 64);
    assert(r->variables.len <= REQUEST_VARIABLES_MAX);
    assert(r->scheduled_for_us == 0 || r->scheduled_for_us > NOW_US);
    assert(channel_name(r->channel)[0] != '\0' && r->priority != PRIORITY_NONE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena *arena = arena_new(0);
    Str body = str_of(data, size);
    RequestList list = {0};
    Problem problem = {0};
    const RequestRules rules = {.now_us = NOW_US, .delivered = ~0U};
    if (request_json_parse(body, &rules, arena, &list, &problem)) {
        assert(list.count >= 1 && list.count <= REQUEST_ARRAY_MAX);
        for (size_t i = 0; i < list.count; i++) {
            check_request(&list.items[i]);
            assert((list.variables[i] == NULL) == (list.items[i].variables.len == 0));
        }
        request_list_done(&list);
    } else {
        assert((problem.status == 400 || problem.status == 422) && problem.detail[0] != '\0');
    }
    Request request;
    Error err = {0};
    if (command_read(body, false, NOW_US, arena, &request, &err)) {
        check_request(&request);
    } else {
        assert(err.kind == ERROR_PERMANENT);
    }
    arena_free(arena);
    return 0;
}
