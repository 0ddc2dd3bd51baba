// SPDX-License-Identifier: Apache-2.0
// links: svc_ingest
// The recipient_query of a batch: what is taken is a list of objects that Postgres reads as it is.
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/id.h"
#include "services/ingest/batches/recipient_query.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_words(const json_t *one, const char *name)
{
    const json_t *list = json_object_get(one, name);
    assert(list == NULL || json_is_array(list));
    assert(list == NULL || json_array_size(list) > 0);
    assert(json_array_size(list) <= RECIPIENT_QUERY_WORDS_MAX);
    for (size_t i = 0; i < json_array_size(list); i++) {
        assert(json_string_length(json_array_get(list, i)) > 0);
    }
}

static void check_query(Str query)
{
    json_t *list = json_loadb(query.ptr, query.len, JSON_REJECT_DUPLICATES, NULL);
    size_t count = json_array_size(list);
    assert(json_is_array(list) && count > 0 && count <= RECIPIENT_QUERY_ALTERNATIVES_MAX);
    for (size_t i = 0; i < count; i++) {
        const json_t *one = json_array_get(list, i);
        size_t known = 0;
        const char *names[] = {"labels", "locales", "identity_types", "consent"};
        for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
            known += json_object_get(one, names[n]) != NULL ? 1 : 0;
        }
        assert(json_object_size(one) == known);
        check_words(one, "labels");
        check_words(one, "locales");
        check_words(one, "identity_types");
        assert(
            json_object_get(one, "consent") == NULL ||
            json_is_true(json_object_get(one, "consent")));
    }
    json_decref(list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena *arena = arena_new(0);
    ApiBody body = {0};
    Str query = STR_EMPTY;
    if (api_body_parse(&body, str_of(data, size), arena) && recipient_query_read(&body, &query)) {
        assert(api_body_good(&body));
        if (query.len > 0) {
            check_query(query);
        }
    } else {
        assert(body.problem.status == 400 || body.problem.status == 422);
        assert(body.problem.detail[0] != '\0');
    }
    api_body_free(&body);
    arena_free(arena);
    return 0;
}
