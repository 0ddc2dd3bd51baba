// SPDX-License-Identifier: Apache-2.0
#include "common/request/template_test.h"

#include "common/codec/hash.h"

bool template_test_mark(Request *request, int64_t now_us, Arena *arena, FieldError *err)
{
    if (request->template_version.len == 0) {
        return field_error(err, "template_version", "required: which version is tested");
    }
    request->is_test = true;
    request->category = CATEGORY_TRANSACTIONAL;
    request->priority = PRIORITY_NORMAL;
    request->scheduled_for_us = 0;
    request->expires_at_us = now_us + TEMPLATE_TEST_EXPIRES_S * INT64_C(1000000);
    Str what = str_from(arena_printf(
        arena, TEMPLATE_TEST_CORRELATION STR_FMT "/" STR_FMT, STR_ARG(request->template_key),
        STR_ARG(request->template_version)));
    request->correlation_id = str_slice(what, 0, REQUEST_ID_MAX);
    return true;
}

void template_test_id(Str tenant, Str event_id, int64_t at_us, char ret[ID_SIZE])
{
    notify_id_derive(tenant, event_id, at_us, retention_class_code(RETENTION_STANDARD), ret);
}
