// SPDX-License-Identifier: Apache-2.0
// links: stentor_vendor
// Addresses of pushes as clients write them: a normal one stays as it is, belongs to one vendor,
// and its vendor can read it.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/model/addresses/push_address.h"
#include "common/vendor/vendor_api.h"
#include "common/vendor/webpush/webpush.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static size_t takers(Str address)
{
    size_t count = 0;
    for (size_t n = 0; vendor_at(n) != NULL; n++) {
        const VendorApi *api = vendor_at(n);
        count += api->channel == CHANNEL_PUSH && api->takes(address) ? 1 : 0;
    }
    return count;
}

static void check_normal(Str normal, Arena *arena)
{
    char reason[ADDRESS_REASON_SIZE] = "";
    Str again = STR_EMPTY;
    VendorMail push = {.to = {.address = normal}};
    require(normal.len > 0 && normal.len <= PUSH_ADDRESS_MAX && !str_has_control(normal));
    require(push_address_check(normal, arena, &again, reason) && str_eq(again, normal));
    require(takers(normal) == 1);
    if (push_address_kind(normal) == PUSH_SUBSCRIPTION) {
        Str audience = webpush_audience(&push, arena);
        require(audience.len == 0 || str_starts(audience, STR("https://")));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena *arena = arena_new(0);
    char reason[ADDRESS_REASON_SIZE] = "";
    Str normal = STR_EMPTY;
    if (push_address_check(str_of(data, size), arena, &normal, reason)) {
        check_normal(normal, arena);
    } else {
        require(reason[0] != '\0');
    }
    arena_free(arena);
    return 0;
}
