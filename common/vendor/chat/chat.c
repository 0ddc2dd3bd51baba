// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/chat/chat.h"

#include "common/base/json_scan.h"
#include "common/vendor/vendor_read.h"

bool chat_url(Str address, ChatUrl *ret)
{
    Str scheme = STR("https://");
    if (!str_starts(address, scheme)) {
        return false;
    }
    Str rest = str_slice(address, scheme.len, address.len);
    ptrdiff_t slash = str_find(rest, '/');
    if (slash <= 0) {
        return false;
    }
    *ret = (ChatUrl){str_slice(rest, 0, (size_t)slash), str_slice(rest, (size_t)slash, rest.len)};
    if (str_ends(ret->host, STR(":443"))) { // as Teams writes it
        ret->host = str_slice(ret->host, 0, ret->host.len - 4);
    }
    for (size_t i = 0; i < ret->host.len; i++) {
        char c = ret->host.ptr[i];
        if (!((c >= 'a' && c <= 'z') || ascii_is_digit(c) || c == '-' || c == '.')) {
            return false;
        }
    }
    for (size_t i = 0; i < ret->target.len; i++) {
        char c = ret->target.ptr[i];
        if (c <= 0x20 || c >= 0x7f || c == '#' || c == '@' || c == '\\' || c == '"') {
            return false;
        }
    }
    return !vendor_url_leaves_path(ret->target);
}

static size_t count_characters(Str text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++) {
        count += ((unsigned char)text.ptr[i] & 0xc0) != 0x80;
    }
    return count;
}

bool chat_check(
    const VendorApi *api, const VendorMail *mail, const VendorAccount *account, size_t text_max,
    Error *err)
{
    if (!vendor_check_account(api, account, err)) {
        return false;
    }
    if (!api->takes(mail->to.address)) {
        return error_set(
            err, ERROR_PERMANENT, "the message's 'to' is not an address of %s: %s", api->name,
            api->addresses);
    }
    if (mail->text.len == 0 && mail->data.len == 0) {
        return error_set(err, ERROR_PERMANENT, "the message has neither 'text' nor 'data'");
    }
    if (!str_is_utf8(mail->text) || !str_is_utf8(mail->data)) {
        return error_set(
            err, ERROR_PERMANENT, "the message's '%s' is not UTF-8",
            str_is_utf8(mail->text) ? "data" : "text");
    }
    size_t count = count_characters(mail->text);
    return count <= text_max ||
           error_set(
               err, ERROR_PERMANENT,
               "the message's 'text' has %zu characters, and %s takes at most %zu", count,
               api->name, text_max);
}

Str chat_target(
    const VendorMail *mail, const VendorAccount *account, const char *query, Arena *arena)
{
    ChatUrl url = {.host = STR_EMPTY};
    (void)chat_url(mail->to.address, &url);
    const char *origin = arena_printf(arena, "https://" STR_FMT, STR_ARG(url.host));
    const char *mark = query[0] == '\0' ? "" : str_find(url.target, '?') >= 0 ? "&" : "?";
    const char *target = arena_printf(arena, STR_FMT "%s%s", STR_ARG(url.target), mark, query);
    return vendor_url(account, str_from(origin), str_from(target), arena);
}

bool chat_member(
    const VendorMail *mail, const char *name, json_type type, size_t most, json_t **ret, Error *err)
{
    *ret = NULL;
    if (mail->data.len == 0) {
        return true;
    }
    JsonExcess excess;
    json_t *data = json_is_modest(mail->data, &excess)
                       ? json_loadb(mail->data.ptr, mail->data.len, JSON_REJECT_DUPLICATES, NULL)
                       : NULL;
    json_t *member = json_object_get(data, name);
    bool ok = true;
    if (!json_is_object(data)) {
        ok = error_set(err, ERROR_PERMANENT, "the message's 'data' is not a JSON object");
    } else if (member != NULL && json_typeof(member) != type) {
        ok = error_set(
            err, ERROR_PERMANENT, "the message's 'data.%s' is not %s", name,
            type == JSON_ARRAY ? "an array" : "an object");
    } else if (json_array_size(member) > most) {
        ok = error_set(
            err, ERROR_PERMANENT, "the message's 'data.%s' has %zu entries, at most %zu", name,
            json_array_size(member), most);
    }
    *ret = ok ? json_incref(member) : NULL;
    json_decref(data);
    return ok;
}

bool chat_set_json(
    const VendorApi *api, VendorRequest *request, json_t *root, Arena *arena, Error *err)
{
    vendor_set_json(request, root, arena);
    return request->body.len <= api->message_max ||
           error_set(
               err, ERROR_PERMANENT, "the message has %zu bytes, and %s takes at most %zu",
               request->body.len, api->name, api->message_max);
}

void chat_read(const VendorAnswer *answer, Arena *arena, SendResult *ret)
{
    vendor_read_status(answer, arena, ret);
    bool gone = answer->status == 401 || answer->status == 403 || answer->status == 404 ||
                answer->status == 410;
    if (gone) {
        vendor_read_as(SEND_ANSWERED, REPLY_BAD_ADDRESS, ret);
    } else if (ret->state == SEND_ANSWERED && ret->reply == REPLY_CONFIG) {
        vendor_read_as(SEND_ANSWERED, REPLY_TERMINAL, ret);
    }
}
