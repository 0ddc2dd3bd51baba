// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/push/push_content.h"

#include "common/base/json_scan.h"

enum { COLLAPSE_MAX = 32 };

static bool check_text(Str text, const char *field, Error *err)
{
    return str_is_utf8(text) ||
           error_set(err, ERROR_PERMANENT, "the push's '%s' is not UTF-8", field);
}

bool push_check_account(const VendorApi *api, const VendorAccount *account, Error *err)
{
    if (!vendor_check_account(api, account, err)) {
        return false;
    }
    return (account->bearer.len > 0 && !str_has_control(account->bearer)) ||
           error_set(
               err, ERROR_TRANSIENT, "the credential '" STR_FMT "' of %s has no token yet",
               STR_ARG(account->name), api->name);
}

bool push_check(
    const VendorApi *api, const VendorMail *push, const VendorAccount *account, Error *err)
{
    if (!push_check_account(api, account, err)) {
        return false;
    }
    if (!push_has_alert(push) && push->data.len == 0) {
        return error_set(
            err, ERROR_PERMANENT, "the push has neither 'title', 'body' nor 'data', and needs one");
    }
    size_t size = push->subject.len + push->text.len + push->data.len;
    if (size > api->message_max) {
        return error_set(
            err, ERROR_PERMANENT,
            "the push's 'title', 'body' and 'data' have %zu bytes, and %s takes at most %zu", size,
            api->name, api->message_max);
    }
    return check_text(push->subject, "title", err) && check_text(push->text, "body", err) &&
           check_text(push->data, "data", err);
}

json_t *push_data(const VendorMail *push, Error *err)
{
    JsonExcess excess;
    if (push->data.len == 0) {
        return json_object();
    }
    json_t *data = json_is_modest(push->data, &excess)
                       ? json_loadb(push->data.ptr, push->data.len, JSON_REJECT_DUPLICATES, NULL)
                       : NULL;
    if (!json_is_object(data)) {
        json_decref(data);
        error_set(err, ERROR_PERMANENT, "the push's 'data' is not a JSON object");
        return NULL;
    }
    return data;
}

bool push_has_alert(const VendorMail *push)
{
    return push->subject.len > 0 || push->text.len > 0;
}

int64_t push_ttl_s(const VendorMail *push, int64_t now_us)
{
    int64_t left_s = (push->expires_at_us - now_us) / 1000000;
    if (push->expires_at_us == 0 || left_s > PUSH_TTL_MAX_S) {
        return PUSH_TTL_MAX_S;
    }
    return left_s > 0 ? left_s : 0;
}

Str push_collapse_id(const VendorMail *push)
{
    return str_slice(push->notification_id, 0, COLLAPSE_MAX);
}

static void begin_claim(Buf *claims, const char *name)
{
    buf_char(claims, claims->len == 0 ? '{' : ',');
    buf_json(claims, str_from(name));
    buf_char(claims, ':');
}

void push_claim(Buf *claims, const char *name, Str value)
{
    begin_claim(claims, name);
    buf_json(claims, value);
}

void push_claim_int(Buf *claims, const char *name, int64_t value)
{
    begin_claim(claims, name);
    buf_printf(claims, "%lld", (long long)value);
}
