// SPDX-License-Identifier: Apache-2.0
// ready: /readyz of services' admin ports, for a machine without curl.
#include <curl/curl.h>
#include <string.h>

#include "common/base/buf.h"
#include "services/cli/cli.h"

enum { REASON_MAX = 8192, TIMEOUT_S = 5 };

static size_t on_curl_body(char *data, size_t size, size_t count, void *ctx)
{
    (void)buf_append(ctx, data, size * count); // what is longer is cut: the status counts
    return size * count;
}

static bool ask(Cli *cli, CURL *curl, const char *url)
{
    Buf body;
    long status = 0;
    size_t len = strlen(url);
    bool whole = str_ends(str_from(url), STR("/readyz"));
    buf_init(&body, REASON_MAX);
    curl_easy_setopt(
        curl, CURLOPT_URL,
        whole ? url
              : arena_printf(
                    cli->arena, "%s%sreadyz", url, len > 0 && url[len - 1] == '/' ? "" : "/"));
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_curl_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &body);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)TIMEOUT_S);
    CURLcode code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    Str said = str_trim(buf_view(&body));
    printf(
        "%s: " STR_FMT "\n", url,
        STR_ARG(code == CURLE_OK ? said : str_from(curl_easy_strerror(code))));
    buf_done(&body);
    return code == CURLE_OK && status == 200;
}

int cmd_ready(Cli *cli)
{
    bool ready = true;
    CURL *curl = curl_easy_init();
    for (int i = 0; i < cli->args.word_count; i++) {
        ready = ask(cli, curl, args_word(&cli->args, i)) && ready;
    }
    curl_easy_cleanup(curl);
    return ready ? EXIT_DONE : EXIT_FAILED;
}
