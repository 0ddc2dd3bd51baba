// SPDX-License-Identifier: Apache-2.0
// links: stentor_names
// Any bytes as names: the plain name of an event is a fixed point and an ending of nothing is cut
// but one; likeness of members is symmetric, and a member that is found is alike.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/names/event_type.h"
#include "common/names/member.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void check_type(Str text)
{
    Str plain = event_type_plain(text);
    check(str_starts(text, plain) && str_eq(event_type_plain(plain), plain));
    check(str_eq(plain, text) || event_type_is_known(plain));
    Str type = event_type_of_urn(text);
    check(type.len < text.len || text.len == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Str rest = str_of(data, size);
    Str first = STR_EMPTY;
    check_type(rest);
    json_t *object = json_object();
    while (str_split(&rest, '\n', &first)) {
        Str other = rest;
        check(member_is_alike(first, other) == member_is_alike(other, first));
        check(member_is_alike(first, first));
        (void)json_object_setn_new(object, first.ptr, first.len, json_integer(1));
        if (member_find(object, other) != NULL) {
            bool alike = false;
            for (void *at = json_object_iter(object); at != NULL;
                 at = json_object_iter_next(object, at)) {
                alike = alike || member_is_alike(other, str_from(json_object_iter_key(at)));
            }
            check(alike || str_find(str_of(data, size), '\0') >= 0);
        }
    }
    json_decref(object);
    return 0;
}
