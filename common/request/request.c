// SPDX-License-Identifier: Apache-2.0
#include "common/request/request.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/id.h"
#include "common/model/channel_address.h"
#include "common/request/consent.h"
#include "common/request/request_mail.h"
#include "common/request/semver.h"

bool field_error(FieldError *err, const char *field, const char *format, ...)
{
    err->field = field;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    return false;
}

static bool check_text(Str text, size_t max, const char *field, FieldError *err)
{
    if (text.len > max) {
        return field_error(err, field, "longer than %zu bytes", max);
    }
    if (str_has_control(text)) {
        return field_error(err, field, "has a line break or another control character");
    }
    return true;
}

static bool check_locale(Str locale, FieldError *err)
{
    if (locale.len == 0) {
        return true;
    }
    size_t run = 0;
    bool good = locale.len <= REQUEST_LOCALE_MAX;
    for (size_t i = 0; good && i < locale.len; i++) {
        char c = locale.ptr[i];
        bool letter = ascii_is_letter(c);
        run = c == '-' ? 0 : run + 1;
        good =
            (letter || (c >= '0' && c <= '9') || (c == '-' && i > 0 && locale.ptr[i - 1] != '-')) &&
            run <= 8;
    }
    if (!good || run == 0) {
        return field_error(err, "locale", "not a language tag such as 'en-US'");
    }
    return true;
}

static bool check_address(Request *request, Arena *arena, FieldError *err)
{
    char reason[ADDRESS_REASON_SIZE];
    if (request->to.len == 0 && request->recipient_id.len > 0) {
        return true; // the recipient's own address of the channel
    }
    if (request->to.len == 0) {
        return field_error(err, "to", "required where there is no recipient_id");
    }
    return people_address_check(request->channel, request->to, arena, &request->to, reason) ||
           field_error(err, "to", "%s", reason);
}

static bool check_recipient(Request *request, Arena *arena, FieldError *err)
{
    if (request->recipient_id.len > 0 && !id_parse(request->recipient_id, "rcp_", NULL)) {
        return field_error(err, "recipient_id", "not a recipient's id ('rcp_' and a ULID)");
    }
    char reason[ADDRESS_REASON_SIZE];
    return check_address(request, arena, err) &&
           check_text(request->to_name, REQUEST_NAME_MAX, "to.name", err) &&
           (address_name_check(request->to_name, reason) ||
            field_error(err, "to.name", "%s", reason));
}

static bool check_template(const Request *request, FieldError *err)
{
    if (request->template_key.len == 0) {
        return field_error(err, "template", "required");
    }
    if (!id_is_key(request->template_key)) {
        return field_error(err, "template", "not a template's key: a-z, 0-9, '_', '-', at most 64");
    }
    if (request->template_version.len > 0 && !semver_is(request->template_version)) {
        return field_error(err, "template_version", "not a version such as '1.2.0'");
    }
    if (request->variables.len > REQUEST_VARIABLES_MAX) {
        return field_error(
            err, "variables", "%zu bytes of JSON; at most %d", request->variables.len,
            (int)REQUEST_VARIABLES_MAX);
    }
    return check_locale(request->locale, err);
}

static bool check_times(Request *request, int64_t now_us, FieldError *err)
{
    if (request->scheduled_for_us < 0 ||
        request->scheduled_for_us > now_us + REQUEST_SCHEDULE_MAX_S * INT64_C(1000000)) {
        return field_error(err, "scheduled_for", "more than 366 days ahead");
    }
    if (request->scheduled_for_us <= now_us) {
        request->scheduled_past = request->scheduled_for_us != 0;
        request->scheduled_for_us = 0;
    }
    if (request->expires_at_us != 0 && request->expires_at_us <= now_us) {
        return field_error(err, "expires_at", "in the past");
    }
    if (request->expires_at_us != 0 && request->expires_at_us <= request->scheduled_for_us) {
        return field_error(err, "expires_at", "not after scheduled_for");
    }
    return true;
}

static bool check_kind(Request *request, FieldError *err)
{
    if (request->channel == CHANNEL_NONE) {
        request->channel = CHANNEL_EMAIL;
    }
    if (channel_name(request->channel)[0] == '\0') {
        return field_error(err, "channel", "not a channel");
    }
    if (request->priority == PRIORITY_NONE) {
        request->priority = PRIORITY_NORMAL;
        request->priority_unsaid = true;
    }
    if (priority_name(request->priority)[0] == '\0') {
        return field_error(err, "priority", "not one of critical, high, normal, low");
    }
    if (request->category != CATEGORY_NONE && category_name(request->category)[0] == '\0') {
        return field_error(err, "category", "not a category");
    }
    return true;
}

static bool check_consent(const Request *request, int64_t now_us, FieldError *err)
{
    return consent_check(request->consent_source, request->consent_at_us, now_us, err);
}

static bool check_retries(const Request *request, FieldError *err)
{
    const Ladder any = ladder_default();
    Ladder own;
    Error wrong = {0};
    return ladder_own(&any, &request->retries, &own, &wrong) ||
           field_error(err, "retries", "%s", wrong.text);
}

static bool check_ids(const Request *request, FieldError *err)
{
    return check_text(request->correlation_id, REQUEST_ID_MAX, "correlation_id", err) &&
           check_text(request->source_event_id, REQUEST_ID_MAX, "source_event_id", err) &&
           check_text(request->source_event_type, REQUEST_ID_MAX, "source_event_type", err);
}

static bool check_mail(Request *request, Arena *arena, FieldError *err)
{
    return request->mail == NULL ||
           request_mail_check(request->mail, request->channel, request->to, arena, err);
}

bool request_check(Request *request, int64_t now_us, Arena *arena, FieldError *err)
{
    return check_kind(request, err) && check_recipient(request, arena, err) &&
           check_template(request, err) && check_ids(request, err) &&
           check_times(request, now_us, err) && check_consent(request, now_us, err) &&
           check_retries(request, err) && check_mail(request, arena, err);
}

bool request_check_on(Request *request, size_t *at, int64_t now_us, Arena *arena, FieldError *err)
{
    bool ok = true;
    while (ok) {
        switch ((*at)++) {
        case 0:
            ok = check_kind(request, err);
            break;
        case 1:
            ok = check_recipient(request, arena, err);
            break;
        case 2:
            ok = check_template(request, err);
            break;
        case 3:
            ok = check_ids(request, err);
            break;
        case 4:
            ok = check_times(request, now_us, err);
            break;
        case 5:
            ok = check_consent(request, now_us, err);
            break;
        case 6:
            ok = check_retries(request, err);
            break;
        case 7:
            ok = check_mail(request, arena, err);
            break;
        default:
            return true;
        }
    }
    return false;
}

// ---- problems ----

// "to" is named by "to" and by "to.address".
static bool names(const char *known, const char *field)
{
    size_t len = strlen(field);
    return strncmp(known, field, len) == 0 &&
           (known[len] == '\0' || (len > 0 && known[len] == '.'));
}

bool problem_is_full(const Problem *problem)
{
    return problem->more_count == PROBLEM_MORE_MAX;
}

void problem_add(Problem *problem, Arena *arena, const char *field, const char *detail)
{
    if (problem->status == 0) {
        *problem =
            (Problem){.status = 422, .slug = "invalid-field", .title = "A field is not valid"};
        (void)snprintf(problem->field, sizeof problem->field, "%s", field);
        (void)snprintf(problem->detail, sizeof problem->detail, "%s", detail);
        return;
    }
    bool known = problem->status != 422 || problem_is_full(problem) || names(problem->field, field);
    for (size_t i = 0; i < problem->more_count; i++) {
        known = known || names(problem->more[i].field, field);
    }
    if (known) {
        return;
    }
    if (problem->more == NULL) {
        problem->more = arena_array(arena, PROBLEM_MORE_MAX, sizeof *problem->more);
    }
    ProblemField *next = &problem->more[problem->more_count++];
    (void)snprintf(next->field, sizeof next->field, "%s", field);
    (void)snprintf(next->detail, sizeof next->detail, "%s", detail);
}
