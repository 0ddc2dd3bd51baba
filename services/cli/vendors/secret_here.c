// SPDX-License-Identifier: Apache-2.0
#include "services/cli/vendors/secret_here.h"

#include <uv.h>

#include "common/credential/secret_read.h"

typedef struct Reading {
    Arena *arena;
    Str text;
    Error err;
} Reading;

static void on_read(void *ctx, Str text, bool same, const SecretStamp *stamp, const Error *err)
{
    (void)same, (void)stamp;
    Reading *reading = ctx;
    if (err != NULL) {
        reading->err = *err;
    } else {
        reading->text = arena_str(reading->arena, text);
    }
}

bool secret_here(const Cli *cli, Str reference, Str *ret, Error *err)
{
    SecretRules rules;
    Reference parsed;
    if (!reference_parse(reference, &parsed, err) ||
        !secret_rules_parse(str_from(cli->settings.secret_dirs), &rules, err)) {
        return false;
    }
    uv_loop_t loop;
    Reading reading = {.arena = cli->arena, .text = STR_EMPTY};
    (void)uv_loop_init(&loop);
    (void)secret_read(&loop, &rules, &parsed, &(SecretStamp){0}, on_read, &reading);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&loop);
    if (reading.err.kind != ERROR_NONE) {
        *err = reading.err;
        return false;
    }
    *ret = reading.text;
    return true;
}
