// SPDX-License-Identifier: Apache-2.0
#include "services/cli/replay/shadow_plan.h"

#include <string.h>

#include "common/base/id.h"
#include "common/replay/replay_plan.h"
#include "common/template/template.h"

static bool read_words(Cli *cli, const char *flag, char **ret, Error *err)
{
    const char *path = args_flag(&cli->args, flag);
    Str text;
    *ret = NULL;
    if (path == NULL) {
        return true;
    }
    if (!cli_read_file(cli, path, TEMPLATE_SOURCE_MAX, &text, err)) {
        return error_wrap(err, "--%s", flag);
    }
    if (!str_is_utf8(text)) {
        return error_set(err, ERROR_USAGE, "--%s: '%s' is not UTF-8", flag, path);
    }
    *ret = arena_cstr(cli->arena, text);
    return true;
}

// "mails/welcome.v2.hbs" is of the template 'welcome'.
static bool read_key(Cli *cli, ShadowPlan *plan, Error *err)
{
    const char *path = args_flag(&cli->args, "template");
    plan->key = args_flag(&cli->args, "key");
    if (plan->key == NULL && path != NULL) {
        const char *slash = strrchr(path, '/');
        const char *name = slash != NULL ? slash + 1 : path;
        plan->key = arena_cstr(cli->arena, str_of(name, strcspn(name, ".")));
    }
    if (plan->key == NULL || !id_is_key(str_from(plan->key))) {
        return error_set(
            err, ERROR_USAGE,
            "'%s' is not a template key: 1 to 64 of a-z 0-9 '_' '-' (HINT: --key KEY)",
            plan->key != NULL ? plan->key : "");
    }
    return true;
}

static bool read_span(Cli *cli, int64_t now_us, ShadowPlan *plan, Error *err)
{
    const Args *args = &cli->args;
    if (!args_has(args, "from-time")) {
        return error_set(
            err, ERROR_USAGE, "--from-time TIME is required: RFC 3339, or 2h, 7d (ago)");
    }
    if (!args_time(args, "from-time", TIME_BEFORE_NOW, now_us, &plan->from_us, err) ||
        !args_time(args, "to-time", TIME_BEFORE_NOW, now_us, &plan->to_us, err)) {
        return false;
    }
    if (plan->from_us > now_us) {
        return error_set(err, ERROR_USAGE, "--from-time is in the future");
    }
    if (args_has(args, "to-time") && plan->to_us < plan->from_us) {
        return error_set(err, ERROR_USAGE, "--to-time is before --from-time");
    }
    return args_int(&cli->args, "limit", 0, 1, INT64_MAX, &plan->limit, err) &&
           args_int(&cli->args, "diffs", 3, 0, SHADOW_DIFFS_MAX, &plan->diffs, err);
}

bool shadow_plan_read(Cli *cli, int64_t now_us, ShadowPlan *ret, Error *err)
{
    static const char *const others[] = {
        "stream",  "from-seq",   "last-per-subject", "to-seq",
        "subject", "to-service", "to-subject",       "dry-run",
        "rate",    "run",        "accept-again",
    };
    *ret = (ShadowPlan){.locale = args_flag(&cli->args, "locale")};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (args_has(&cli->args, others[i])) {
            return error_set(
                err, ERROR_USAGE, "--%s has no meaning with --shadow, which publishes nothing",
                others[i]);
        }
    }
    if (!read_words(cli, "template", &ret->html, err) ||
        !read_words(cli, "subject-template", &ret->subject, err) ||
        !read_words(cli, "text", &ret->text, err)) {
        return false;
    }
    if (ret->html == NULL && ret->subject == NULL && ret->text == NULL) {
        return error_set(
            err, ERROR_USAGE,
            "new content is required: --template FILE (html), --subject-template FILE or --text "
            "FILE");
    }
    if (ret->subject != NULL) {
        ret->subject[strcspn(ret->subject, "\r\n")] = '\0'; // an editor's line break is none of it
    }
    return read_key(cli, ret, err) && cli_tenant_or_all(cli, "requests", &ret->tenant, err) &&
           read_span(cli, now_us, ret, err);
}
