// SPDX-License-Identifier: Apache-2.0
// links: stentor_http
// Law: what the strict rules take is a host that libcurl reads in the same way, and no address that
// is denied in any notation.
#define _DEFAULT_SOURCE // inet_aton
#include <arpa/inet.h>
#include <assert.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/http/client/guard.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_taken(const HttpGuard *guard, const GuardedUrl *url)
{
    size_t len = strlen(url->host);
    assert(len > 0 && len <= GUARD_HOST_MAX && url->port > 0);
    struct in_addr in;
    // libc reads more notations than any resolver: what it takes for an address was checked as one.
    if (inet_aton(url->host, &in) != 0) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = in};
        assert(url->is_address && guard_address(guard, (struct sockaddr *)&address, NULL));
    }
    for (const char *at = url->host; *at != '\0'; at++) {
        assert(ascii_is_alnum(*at) || strchr("-._:", *at) != NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const HttpGuard guards[] = {
        {0}, {.tenant = true}, {.allow_private = true, .allow_loopback = true}};
    char *text = xmalloc(size + 1);
    memcpy(text, data, size);
    text[size] = '\0';
    for (size_t i = 0; i < sizeof guards / sizeof *guards; i++) {
        GuardedUrl url;
        Error err = {0};
        bool good = guard_url(&guards[i], text, &url, &err);
        assert(good == (err.kind == ERROR_NONE));
        if (good) {
            check_taken(&guards[i], &url);
        }
    }
    free(text);
    return 0;
}
