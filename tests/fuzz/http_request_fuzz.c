// SPDX-License-Identifier: Apache-2.0
// links: stentor_http
// The headers of a request as libmicrohttpd hands them on, one a line, "name: value". Law: what is
// taken has one length at most, never beside chunks, and only names that are tokens; addresses and
// proxies are never read beyond their end.
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "common/http/client_address.h"
#include "common/http/framing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t split(Str text, HttpField fields[HTTP_FIELDS_MAX])
{
    size_t count = 0;
    Str line = STR_EMPTY, name = STR_EMPTY;
    while (text.len > 0 && count < HTTP_FIELDS_MAX && str_split(&text, '\n', &line)) {
        if (str_split(&line, ':', &name)) {
            fields[count++] = (HttpField){name, str_trim(line)};
        }
    }
    return count;
}

static void check_taken(const HttpField *fields, size_t count, const HttpFraming *framing)
{
    size_t lengths = 0, codings = 0;
    HttpProxies proxies = {.count = 0};
    HttpAddress at = {{0}};
    for (size_t i = 0; i < count; i++) {
        lengths += str_eq_nocase(fields[i].name, STR("Content-Length")) ? 1 : 0;
        codings += str_eq_nocase(fields[i].name, STR("Transfer-Encoding")) ? 1 : 0;
        assert(fields[i].name.len > 0 && str_find(fields[i].name, ' ') < 0);
        assert(str_find(fields[i].value, '\0') < 0);
        (void)http_client_of(&proxies, fields[i].value, &at);
        (void)http_proxies_parse(fields[i].value, &proxies, NULL);
    }
    assert(lengths + codings <= 1);
    assert(framing->chunked == (codings == 1));
    assert(framing->length == 0 || lengths == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    HttpField fields[HTTP_FIELDS_MAX];
    size_t count = split(str_of(data, size), fields);
    HttpFraming framing;
    HttpRefusal refusal = {0};
    if (http_framing_read(fields, count, STR("HTTP/1.1"), &framing, &refusal)) {
        check_taken(fields, count, &framing);
    } else {
        assert(refusal.status >= 400 && refusal.detail != NULL);
    }
    return 0;
}
