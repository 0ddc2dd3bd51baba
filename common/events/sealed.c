// SPDX-License-Identifier: Apache-2.0
#include "common/events/sealed.h"

#include <assert.h>
#include <string.h>

#include "common/codec/event.h"

bool sealed_names_key(const Stentor__V1__Sealed *sealed)
{
    return sealed != NULL && sealed->key_subject.len == KEY_SUBJECT_LEN &&
           sealed->key_generation > 0;
}

bool sealed_check(const Stentor__V1__Sealed *sealed, const char *field, Error *err)
{
    if (sealed == NULL) {
        return error_set(err, ERROR_PERMANENT, "field '%s' is missing", field);
    }
    return sealed_names_key(sealed) ||
           error_set(err, ERROR_PERMANENT, "field '%s' does not name its key", field);
}

bool sealed_same_key(const Stentor__V1__Sealed *a, const Stentor__V1__Sealed *b)
{
    return a->key_generation == b->key_generation &&
           str_eq(pb_bytes(a->key_subject), pb_bytes(b->key_subject));
}

KeyWant key_want_of(Str tenant, const Stentor__V1__Sealed *sealed)
{
    KeyWant want = {.tenant = tenant, .generation = sealed->key_generation};
    assert(sealed->key_subject.len == sizeof want.subject);
    memcpy(want.subject, sealed->key_subject.data, sizeof want.subject);
    return want;
}
