// SPDX-License-Identifier: Apache-2.0
// links: stentor_api
// Any bytes as If-Match and, behind the first line break, If-None-Match.
#include <stdlib.h>

#include "common/api/precondition.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Str rest = str_of(data, size);
    Str if_match = STR_EMPTY;
    (void)str_split(&rest, '\n', &if_match);
    Str if_none_match = rest.ptr == NULL ? STR_EMPTY : rest;
    Precondition what;
    const char *wrong = NULL;
    if (!precondition_parse(if_match, if_none_match, &what, &wrong)) {
        require(wrong != NULL);
        return 0;
    }
    require(what.tag_count <= PRECONDITION_TAGS_MAX);
    require(precondition_is_given(&what) == (if_match.len > 0 || if_none_match.len > 0));
    require(precondition_holds(&what, 0) == (!what.must_exist && !what.must_match));
    for (size_t i = 0; i < what.tag_count; i++) {
        require(what.tags[i] > 0 && precondition_holds(&what, what.tags[i]));
    }
    return 0;
}
