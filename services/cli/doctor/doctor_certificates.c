// SPDX-License-Identifier: Apache-2.0
// When certificates end: of the files that this command's own settings name, and the one that the
// API shows over HTTPS. What the services read from files is a gauge of theirs
// (stentor_tls_certificate_expiry_seconds).
#include <curl/curl.h>
#include <string.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/service/health/certificates.h"
#include "common/tls/tls_expiry.h"
#include "services/cli/api_client.h"
#include "services/cli/doctor/doctor.h"

#define DAY_US (INT64_C(86400) * 1000000)

enum { SOON_DAYS = 14 };

typedef struct Check {
    Doctor *doctor;
    size_t good;
    bool warned;
} Check;

static void judge(Check *check, const char *what, int64_t end_us)
{
    Arena *arena = check->doctor->cli->arena;
    int64_t left_us = end_us == INT64_MAX ? INT64_MAX : end_us - clock_now_us();
    if (left_us > SOON_DAYS * DAY_US) {
        check->good++;
        return;
    }
    check->warned = true;
    doctor_say(
        check->doctor, "certificates", left_us <= 0 ? CHECK_FAIL : CHECK_WARN,
        left_us <= 0 ? arena_printf(arena, "%s has expired (HINT: replace it)", what)
                     : arena_printf(
                           arena, "%s expires in %s (HINT: replace it, then restart what reads it)",
                           what, doctor_age(check->doctor->cli, left_us)));
}

static void judge_file(void *ctx, const char *setting, const char *path, bool again)
{
    (void)again;
    Check *check = ctx;
    Error err = {0};
    int64_t end_us = 0;
    if (tls_file_expiry(path, &end_us, &err)) {
        judge(check, arena_printf(check->doctor->cli->arena, "%s (%s)", setting, path), end_us);
    } else {
        check->warned = true;
        doctor_say(
            check->doctor, "certificates", CHECK_FAIL,
            arena_printf(check->doctor->cli->arena, "%s: %s", setting, err.text));
    }
}

// Of the server's own certificate, the first of its chain: "Expire date:May  1 10:00:00 2027 GMT".
static int64_t end_of_shown(CURL *curl)
{
    struct curl_certinfo *shown = NULL;
    Str name = STR("Expire date:");
    if (curl_easy_getinfo(curl, CURLINFO_CERTINFO, &shown) != CURLE_OK || shown == NULL ||
        shown->num_of_certs < 1) {
        return INT64_MAX;
    }
    for (const struct curl_slist *each = shown->certinfo[0]; each != NULL; each = each->next) {
        if (str_starts(str_from(each->data), name)) {
            return (int64_t)curl_getdate(each->data + name.len, NULL) * 1000000;
        }
    }
    return INT64_MAX;
}

static size_t on_curl_body(char *data, size_t size, size_t count, void *ctx)
{
    (void)data;
    (void)ctx;
    return size * count;
}

// One that has expired already fails the check of the API.
static void judge_api(Check *check)
{
    const Cli *cli = check->doctor->cli;
    if (!str_starts(str_from(cli->settings.api_url), STR("https://"))) {
        return;
    }
    CURL *curl = curl_easy_init();
    api_client_trust(cli, curl);
    curl_easy_setopt(curl, CURLOPT_URL, cli->settings.api_url);
    curl_easy_setopt(curl, CURLOPT_CERTINFO, 1L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_curl_body);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, 5L);
    if (curl_easy_perform(curl) == CURLE_OK) {
        judge(
            check, arena_printf(cli->arena, "that of %s", cli->settings.api_url),
            end_of_shown(curl));
    }
    curl_easy_cleanup(curl);
}

void doctor_certificates(Doctor *doctor)
{
    const Cli *cli = doctor->cli;
    Check check = {.doctor = doctor};
    certificates_each(
        cli->table->settings, cli->table->setting_count, &cli->settings, judge_file, &check);
    judge_api(&check);
    if (check.good > 0 && !check.warned) {
        doctor_say(
            doctor, "certificates", CHECK_OK,
            arena_printf(
                cli->arena, "%zu looked at, none expires within %d days", check.good,
                (int)SOON_DAYS));
    }
}
