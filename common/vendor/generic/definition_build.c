// SPDX-License-Identifier: Apache-2.0
// The request of a vendor by definition. Values reach templates as one JSON object; what stands in
// a URL is percent-encoded before. Strict: a name that is not there is an error, so a misspelled
// one is found when the definition is put.
#include <stdlib.h>

#include "common/http/client/http_client.h"
#include "common/vendor/form.h"
#include "common/vendor/generic/definition_parts.h"
#include "common/vendor/vendor_build.h"
#include "common/vendor/vendor_text.h"

enum { MAIL_BYTES_MAX = 10 * 1024 * 1024, MESSAGE_BYTES_MAX = 256 * 1024 };

#define JSON_VALUE "$value" // {"$value": "data"}: the value itself, no text

typedef struct Making {
    VendorDefinition *definition;
    json_t *values;
    size_t next; // the leaf that is next
    Arena *arena;
    Error *err;
} Making;

// ---- values ----

// Checked UTF-8.
static json_t *text_of(Str text)
{
    return vendor_json_str(text.len > 0 ? text : STR(""));
}

static json_t *data_of(Str text)
{
    json_t *data = text.len > 0 ? json_loadb(text.ptr, text.len, 0, NULL) : NULL;
    return data != NULL ? data : json_object();
}

static json_t *settings_of(const VendorAccount *account)
{
    json_t *settings = json_object();
    for (size_t i = 0; i < account->setting_count; i++) {
        const VendorPair *pair = &account->settings[i];
        (void)json_object_setn_new(settings, pair->name.ptr, pair->name.len, text_of(pair->value));
    }
    return settings;
}

static json_t *parameters_of(const VendorMail *mail)
{
    json_t *list = json_array();
    for (size_t i = 0; i < mail->parameter_count; i++) {
        vendor_json_add(list, text_of(mail->parameters[i]));
    }
    return list;
}

// NULL: ERROR_PERMANENT, a text of it is not UTF-8.
static json_t *values_of(const VendorMail *mail, const VendorAccount *account, Error *err)
{
    Str from = mail->from.address.len > 0 ? mail->from.address : vendor_sender(mail, account);
    const VendorPair texts[] = {
        {STR("to"), mail->to.address},
        {STR("to_name"), mail->to.name},
        {STR("from"), from},
        {STR("from_name"), mail->from.name},
        {STR("reply_to"), mail->reply_to},
        {STR("title"), mail->subject},
        {STR("subject"), mail->subject},
        {STR("text"), mail->text},
        {STR("html"), mail->html},
        {STR("locale"), mail->locale},
        {STR("reference"), mail->reference},
        {STR("notification_id"), mail->notification_id},
        {STR("key"), mail->key},
        {STR("category"), mail->category},
        {STR("template"), mail->template_key},
        {STR("callback_url"), mail->callback_url},
        {STR("id"), account->id},
        {STR("secret"), account->secret},
    };
    json_t *values = json_object();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (!str_is_utf8(texts[i].value)) {
            json_decref(values);
            (void)error_set(
                err, ERROR_PERMANENT, "the message's '" STR_FMT "' is not UTF-8",
                STR_ARG(texts[i].name));
            return NULL;
        }
        vendor_json_put(values, texts[i].name.ptr, text_of(texts[i].value));
    }
    vendor_json_put(values, "attempt", json_integer(mail->attempt));
    vendor_json_put(values, "expires_at", json_integer(mail->expires_at_us / 1000000));
    vendor_json_put(values, "urgent", json_boolean(mail->urgent));
    vendor_json_put(values, "data", data_of(mail->data));
    vendor_json_put(values, "parameters", parameters_of(mail));
    vendor_json_put(values, "settings", settings_of(account));
    return values;
}

// Every text of it percent-encoded; two levels, for `data` has no place in a URL.
static json_t *encoded(const json_t *values, Arena *arena)
{
    json_t *copy = json_copy((json_t *)(uintptr_t)values);
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)(uintptr_t)values, name, value)
    {
        if (json_is_string(value)) {
            Str text = {json_string_value(value), json_string_length(value)};
            (void)json_object_set_new(copy, name, text_of(vendor_encode(text, arena)));
        }
    }
    (void)json_object_del(copy, "data");
    (void)json_object_del(copy, "parameters");
    return copy;
}

static json_t *values_of_url(const json_t *values, Arena *arena)
{
    json_t *copy = encoded(values, arena);
    (void)json_object_set_new(
        copy, "settings", encoded(json_object_get(values, "settings"), arena));
    return copy;
}

// ---- texts ----

static bool render(const Making *making, const Slot *slot, const json_t *values, Str *ret)
{
    Error why = {0};
    const TemplateContext context = {.strict = true};
    Buf out;
    buf_init(&out, TEMPLATE_OUTPUT_MAX);
    bool ok = template_render_in(slot->tpl, &context, values, &out, &why);
    *ret = arena_str(making->arena, buf_view(&out));
    buf_done(&out);
    return ok || definition_fault(making->err, slot->place, "%s", why.text);
}

// ---- bodies ----

static json_t *fill(Making *making, const json_t *value);

// What renders to nothing is left out. NULL: failed.
static json_t *fill_object(Making *making, const json_t *object)
{
    json_t *copy = json_object();
    const char *name = NULL;
    json_t *inner = NULL;
    json_object_foreach((json_t *)(uintptr_t)object, name, inner)
    {
        json_t *filled = fill(making, inner);
        if (filled == NULL) {
            json_decref(copy);
            return NULL;
        }
        if (json_is_string(inner) && json_string_length(filled) == 0 &&
            json_string_length(inner) > 0) {
            json_decref(filled);
        } else {
            (void)json_object_set_new(copy, name, filled);
        }
    }
    return copy;
}

static json_t *fill_array(Making *making, const json_t *array)
{
    json_t *copy = json_array();
    size_t i = 0;
    json_t *inner = NULL;
    json_array_foreach(array, i, inner)
    {
        json_t *filled = fill(making, inner);
        if (filled == NULL) {
            json_decref(copy);
            return NULL;
        }
        (void)json_array_append_new(copy, filled);
    }
    return copy;
}

// {"$value": "settings.account"}
static json_t *fill_value(Making *making, const json_t *name)
{
    const Slot *slot = &making->definition->leaves[making->next++].slot;
    Str path = {json_string_value(name), json_string_length(name)};
    const json_t *value = template_lookup(making->values, path);
    if (value == NULL) {
        (void)definition_fault(making->err, slot->place, "there is no such value");
        return NULL;
    }
    return json_deep_copy(value);
}

// Its depth was limited when it was read.
static json_t *fill(Making *making, const json_t *value)
{
    if (json_is_string(value)) {
        Str text;
        const Slot *slot = &making->definition->leaves[making->next++].slot;
        return render(making, slot, making->values, &text) ? text_of(text) : NULL;
    }
    const json_t *name = json_object_get(value, JSON_VALUE);
    if (json_is_string(name) && json_object_size(value) == 1) {
        return fill_value(making, name);
    }
    if (json_is_object(value)) {
        return fill_object(making, value);
    }
    return json_is_array(value) ? fill_array(making, value) : json_copy((json_t *)(uintptr_t)value);
}

static bool put_json(Making *making, VendorRequest *ret)
{
    json_t *root = fill(making, making->definition->json);
    if (root == NULL) {
        return false;
    }
    vendor_set_json(ret, root, making->arena);
    return true;
}

static bool put_form(Making *making, VendorRequest *ret)
{
    const VendorDefinition *definition = making->definition;
    Buf form;
    bool ok = true;
    buf_init(&form, FORM_BYTES_MAX);
    for (size_t i = 0; ok && i < definition->leaf_count; i++) {
        Str text = STR_EMPTY;
        ok = render(making, &definition->leaves[i].slot, making->values, &text);
        if (ok && text.len > 0) {
            form_put(&form, definition->leaves[i].name, text);
        }
    }
    if (ok && form.full) {
        ok = error_set(making->err, ERROR_PERMANENT, "the form has over %d bytes", FORM_BYTES_MAX);
    }
    if (ok) {
        form_set(ret, &form, making->arena);
    }
    buf_done(&form);
    return ok;
}

static bool put_text(Making *making, VendorRequest *ret)
{
    const VendorDefinition *definition = making->definition;
    vendor_add_header(ret, STR("Content-Type"), str_from(definition->body_type));
    return render(making, &definition->leaves[0].slot, making->values, &ret->body);
}

static bool put_body(Making *making, VendorRequest *ret)
{
    const VendorDefinition *definition = making->definition;
    size_t most = definition->channel == CHANNEL_EMAIL ? MAIL_BYTES_MAX : MESSAGE_BYTES_MAX;
    bool ok = definition->body == BODY_JSON   ? put_json(making, ret)
              : definition->body == BODY_FORM ? put_form(making, ret)
                                              : put_text(making, ret);
    if (!ok) {
        return false;
    }
    return (ret->body.len > 0 && ret->body.len <= most) ||
           error_set(
               making->err, ERROR_PERMANENT, "the request's body has %zu bytes, 1 to %zu are sent",
               ret->body.len, most);
}

// ---- where to ----

static bool put_address(
    const Making *making, const VendorMail *mail, const VendorAccount *account, VendorRequest *ret)
{
    Str prefix = vendor_setting(account, STR("address_prefix"));
    if (prefix.len == 0) {
        return error_set(
            making->err, ERROR_CONFIG,
            "the credential '" STR_FMT "' needs the setting 'address_prefix': with what the URLs "
            "of recipients begin",
            STR_ARG(account->name));
    }
    ret->url = mail->to.address;
    if (!str_starts(mail->to.address, prefix)) {
        return error_set(
            making->err, ERROR_PERMANENT,
            "the message's 'to' does not begin with the setting 'address_prefix'");
    }
    return !vendor_url_leaves_path(mail->to.address) ||
           error_set(
               making->err, ERROR_PERMANENT,
               "the message's 'to' has a part '.' or '..', which leads to another path");
}

static bool put_url(
    const Making *making, const VendorMail *mail, const VendorAccount *account, VendorRequest *ret)
{
    const VendorDefinition *definition = making->definition;
    Str path = STR_EMPTY;
    if (definition->origin.len == 0) {
        return put_address(making, mail, account, ret);
    }
    json_t *values = values_of_url(making->values, making->arena);
    bool ok = render(making, &definition->url, values, &path);
    json_decref(values);
    ret->url = vendor_url(account, definition->origin, path, making->arena);
    if (ok && ret->url.len > HTTP_URL_MAX) {
        return definition_fault(
            making->err, "request.url", "has over %d bytes with the message's values",
            HTTP_URL_MAX);
    }
    if (ok && (str_has_control(path) || str_find(path, ' ') >= 0 || vendor_url_leaves_path(path))) {
        return definition_fault(
            making->err, "request.url", "has a blank, a control character or a part '..'");
    }
    return ok;
}

static bool put_headers(const Making *making, VendorRequest *ret)
{
    const VendorDefinition *definition = making->definition;
    for (size_t i = 0; i < definition->header_count; i++) {
        Str text = STR_EMPTY;
        if (!render(making, &definition->headers[i].slot, making->values, &text)) {
            return false;
        }
        if (str_has_control(text)) {
            return definition_fault(
                making->err, definition->headers[i].slot.place,
                "has a line break or another control character with the message's values");
        }
        if (text.len > 0) {
            vendor_add_header(ret, str_from(definition->headers[i].name), text);
        }
    }
    return true;
}

static bool check_mail(const VendorMail *mail, Error *err)
{
    const char *much = mail->attachment_count > 0             ? "attachments"
                       : mail->cc_count + mail->bcc_count > 0 ? "copies (cc, bcc)"
                                                              : NULL;
    return much == NULL || error_set(
                               err, ERROR_PERMANENT,
                               "the mail has %s, which no vendor by definition carries", much);
}

bool definition_build(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err)
{
    (void)now_us;
    if (account->definition == NULL) {
        return error_set(
            err, ERROR_CONFIG, "the credential '" STR_FMT "' has no definition",
            STR_ARG(account->name));
    }
    VendorDefinition *definition = account->definition;
    const VendorApi *api = definition_api(definition->channel);
    if (!vendor_check_account(api, account, err) || !check_mail(mail, err)) {
        return false;
    }
    *ret = (VendorRequest){.method = definition->method, .body = STR_EMPTY};
    Making making = {definition, values_of(mail, account, err), 0, arena, err};
    if (making.values == NULL) {
        return false;
    }
    bool ok =
        put_url(&making, mail, account, ret) && put_headers(&making, ret) && put_body(&making, ret);
    json_decref(making.values);
    return ok;
}

// ---- a sample ----

static Str sample_address(const VendorDefinition *definition, const VendorAccount *account)
{
    switch (definition->channel) {
    case CHANNEL_EMAIL:
        return STR("alice@example.com");
    case CHANNEL_SMS:
    case CHANNEL_WHATSAPP:
    case CHANNEL_VOICE:
        return STR("+4915112345678");
    case CHANNEL_WEBHOOK:
        return vendor_setting(account, STR("address_prefix"));
    default:
        return STR("dGhpcyBpcyBhIHRva2Vu");
    }
}

bool definition_try(
    VendorDefinition *definition, const VendorAccount *account, Arena *arena, VendorRequest *ret,
    Error *err)
{
    static const Str parameters[] = {{"Alice", 5}, {"17", 2}};
    VendorAccount whole = *account;
    whole.definition = definition;
    whole.secret = account->secret.len > 0 ? account->secret : STR("SECRET");
    whole.name = account->name.len > 0 ? account->name : STR("sample");
    VendorMail mail = {
        .tenant = STR("acme"),
        .notification_id = STR("ntf_01M82XS89VEV77VD8AS0MCMH0B"),
        .attempt = 1,
        .key = STR("ntf_01M82XS89VEV77VD8AS0MCMH0B-1"),
        .category = STR("transactional"),
        .template_key = STR("welcome"),
        .to = {STR("Alice"), sample_address(definition, &whole)},
        .subject = STR("Hello"),
        .text = STR("Hello, \"Alice\" & Bob\n"),
        .callback_url =
            STR("https://hooks.example.com/v1/inbound/acme/vendor/CAPABILITY?attempt=T"),
        .data = STR("{\"order\":17}"),
        .locale = STR("en-US"),
        .reference = STR("welcome"),
        .parameters = parameters,
        .parameter_count = sizeof parameters / sizeof *parameters,
    };
    if (definition->channel == CHANNEL_EMAIL) {
        mail.from = (VendorAddress){STR("Shop"), STR("shop@example.com")};
        mail.html = STR("<p>Hello</p>");
    }
    return definition_build(&mail, &whole, 0, arena, ret, err);
}

// ---- the interface ----

static const char *const settings[] = {"from", "from_urgent", "address_prefix", NULL};

#define BY_DEFINITION(of)                                                                          \
    [of] = {                                                                                       \
        .name = "definition",                                                                      \
        .channel = of,                                                                             \
        .base_url = "",                                                                            \
        .settings = settings,                                                                      \
        .message_max = of == CHANNEL_EMAIL ? MAIL_BYTES_MAX : MESSAGE_BYTES_MAX,                   \
        .recipients_max = 1,                                                                       \
        .build = definition_build,                                                                 \
        .read = definition_read,                                                                   \
        .by_definition = true,                                                                     \
    }

static const VendorApi apis[CHANNEL_COUNT] = {
    BY_DEFINITION(CHANNEL_EMAIL),   BY_DEFINITION(CHANNEL_SMS),   BY_DEFINITION(CHANNEL_WHATSAPP),
    BY_DEFINITION(CHANNEL_PUSH),    BY_DEFINITION(CHANNEL_INAPP), BY_DEFINITION(CHANNEL_VOICE),
    BY_DEFINITION(CHANNEL_WEBHOOK),
};

const VendorApi *definition_api(Channel channel)
{
    return channel > CHANNEL_NONE && channel < CHANNEL_COUNT ? &apis[channel] : NULL;
}
