// SPDX-License-Identifier: Apache-2.0
// links: stentor_base
// Any bytes as a text of a vendor behind one line, the address that is known: what is masked fits,
// is no longer than twice the text, is UTF-8 when the text is, and holds neither a number nor the
// address whole.
#include <stdlib.h>

#include "common/base/arena.h"
#include "common/base/log.h"
#include "common/base/mask/mask_number.h"

enum { TEXT_MAX = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void check_numbers(Str text)
{
    size_t done = 0, begin = 0, end = 0;
    while (mask_next_number(text, done, &begin, &end)) {
        require(begin >= done && end > begin + 6 && end <= text.len);
        done = end;
    }
}

static void check_masked(Str text, bool utf8, char *out, size_t size)
{
    char small[8];
    mask_addresses(text, out, size);
    require(str_from(out).len <= 2 * text.len);
    require(!utf8 || str_is_utf8(str_from(out)));
    mask_addresses(text, small, sizeof small);
    require(str_starts(str_from(out), str_from(small)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char out[2 * TEXT_MAX + 4];
    Str text = str_of(data, size < TEXT_MAX ? size : TEXT_MAX), address;
    if (size == 0) {
        return 0;
    }
    (void)str_split(&text, '\n', &address);
    check_numbers(text);
    check_masked(text, str_is_utf8(text), out, sizeof out);
    mask_known(text, address, out, sizeof out);
    require(str_from(out).len <= 2 * text.len + 1);
    require(
        address.len <= 6 || str_find(address, '*') >= 0 ||
        !str_contains_nocase(str_from(out), address));
    return 0;
}
