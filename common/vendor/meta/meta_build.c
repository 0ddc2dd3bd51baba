// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/meta/meta.h"
#include "common/vendor/vendor_build.h"
#include "common/vendor/vendor_text.h"

enum { MESSAGE_MAX = 64 * 1024 };

static const char *const needs[] = {"phone_number_id", NULL};
static const char *const optional[] = {"version", NULL};

const VendorApi meta_api = {
    .name = "meta",
    .channel = CHANNEL_WHATSAPP,
    .base_url = "https://graph.facebook.com",
    .needs = needs,
    .settings = optional,
    .message_max = MESSAGE_MAX,
    .recipients_max = 1,
    .build = meta_build,
    .read = meta_read,
    .test = meta_test,
    .reasons = meta_reasons,
};

// ---- the template ----

typedef struct Template {
    Str name;
    bool header;
    size_t buttons;
} Template;

static bool is_template_name(Str name)
{
    bool good = name.len > 0 && name.len <= META_TEMPLATE_MAX;
    for (size_t i = 0; good && i < name.len; i++) {
        char c = name.ptr[i];
        good = ascii_is_digit(c) || c == '_' || (c >= 'a' && c <= 'z');
    }
    return good;
}

static bool read_template(Str reference, Template *ret, Error *err)
{
    Str rest = reference, word;
    *ret = (Template){.name = STR_EMPTY};
    (void)str_split(&rest, ';', &ret->name);
    bool good = is_template_name(ret->name);
    while (good && rest.len > 0 && str_split(&rest, ';', &word)) {
        bool header = str_eq(word, STR("header")) && !ret->header && ret->buttons == 0;
        bool button = str_eq(word, STR("button")) && ret->buttons < META_BUTTONS_MAX;
        ret->header = ret->header || header;
        ret->buttons += button ? 1 : 0;
        good = header || button;
    }
    return good ||
           error_set(
               err, ERROR_PERMANENT,
               "the template's 'reference' is not the name of a template of Meta's (a-z 0-9 '_'), "
               "with ';header' or ';button' behind it where a parameter is theirs: '" STR_FMT "'",
               STR_ARG(str_slice(reference, 0, 60)));
}

static bool check_parameters(const VendorMail *mail, const Template *template, Error *err)
{
    size_t least = template->buttons + (template->header ? 1 : 0);
    for (size_t i = 0; i < mail->parameter_count; i++) {
        Str text = mail->parameters[i];
        if (text.len == 0 || !str_is_utf8(text)) {
            return error_set(
                err, ERROR_PERMANENT, "'parameters[%zu]' of the template '" STR_FMT "' is %s", i,
                STR_ARG(template->name), text.len == 0 ? "empty" : "not UTF-8");
        }
    }
    return mail->parameter_count >= least ||
           error_set(
               err, ERROR_PERMANENT,
               "the template '" STR_FMT "' has %zu 'parameters', and its header and buttons need "
               "%zu",
               STR_ARG(template->name), mail->parameter_count, least);
}

static json_t *text_parameters(const Str *texts, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        vendor_json_add(list, vendor_json_pair("type", STR("text"), "text", texts[i]));
    }
    return list;
}

static json_t *component(const char *type, const Str *texts, size_t count)
{
    json_t *object = json_object();
    vendor_json_put_str(object, "type", str_from(type));
    vendor_json_put(object, "parameters", text_parameters(texts, count));
    return object;
}

static json_t *components(const VendorMail *mail, const Template *template, Arena *arena)
{
    const Str *texts = mail->parameters;
    size_t first = template->header ? 1 : 0;
    size_t body = mail->parameter_count - first - template->buttons;
    json_t *list = json_array();
    if (template->header) {
        vendor_json_add(list, component("header", texts, 1));
    }
    if (body > 0) {
        vendor_json_add(list, component("body", texts + first, body));
    }
    for (size_t i = 0; i < template->buttons; i++) {
        json_t *button = component("button", texts + first + body + i, 1);
        vendor_json_put_str(button, "sub_type", STR("url"));
        vendor_json_put_str(button, "index", str_from(arena_printf(arena, "%zu", i)));
        vendor_json_add(list, button);
    }
    return list;
}

// "de-AT" is de_AT there.
static Str language(Str locale, Arena *arena)
{
    char *code = arena_cstr(arena, locale);
    for (size_t i = 0; i < locale.len; i++) {
        code[i] = (char)(code[i] == '-' ? '_' : code[i]);
    }
    return str_from(code);
}

static void put_template(
    json_t *root, const VendorMail *mail, const Template *template, Arena *arena)
{
    json_t *object = json_object();
    json_t *code = json_object();
    vendor_json_put_str(code, "code", language(mail->locale, arena));
    vendor_json_put_str(object, "name", template->name);
    vendor_json_put(object, "language", code);
    vendor_json_put_list(object, "components", components(mail, template, arena));
    vendor_json_put_str(root, "type", STR("template"));
    vendor_json_put(root, "template", object);
}

static void put_text(json_t *root, const VendorMail *mail)
{
    json_t *text = json_object();
    vendor_json_put(text, "preview_url", json_false());
    vendor_json_put_str(text, "body", mail->text);
    vendor_json_put_str(root, "type", STR("text"));
    vendor_json_put(root, "text", text);
}

// ---- requests ----

static bool is_digits(Str text)
{
    bool good = text.len > 0 && text.len <= 32;
    for (size_t i = 0; good && i < text.len; i++) {
        good = ascii_is_digit(text.ptr[i]);
    }
    return good;
}

// "v23.0"
static bool is_version(Str text)
{
    ptrdiff_t dot = str_find(text, '.');
    return str_starts(text, STR("v")) && dot > 1 && is_digits(str_slice(text, 1, (size_t)dot)) &&
           is_digits(str_slice(text, (size_t)dot + 1, text.len));
}

static bool begin(
    const VendorAccount *account, const char *method, const char *leaf, Arena *arena,
    VendorRequest *ret, Error *err)
{
    Str number = vendor_setting(account, STR("phone_number_id"));
    Str version = vendor_setting(account, STR("version"));
    version = version.len > 0 ? version : STR("v23.0");
    if (!is_digits(number) || !is_version(version)) {
        return error_set(
            err, ERROR_CONFIG, "the setting '%s' of the credential '" STR_FMT "' of meta is not %s",
            is_digits(number) ? "version" : "phone_number_id", STR_ARG(account->name),
            is_digits(number) ? "one such as v23.0" : "the number's id (digits)");
    }
    Str path = str_from(
        arena_printf(arena, "/" STR_FMT "/" STR_FMT "%s", STR_ARG(version), STR_ARG(number), leaf));
    *ret = (VendorRequest){
        .method = method,
        .url = vendor_url(account, str_from(meta_api.base_url), path, arena),
        .body = STR_EMPTY};
    vendor_add_authorization(ret, "Bearer", account->secret, arena);
    return true;
}

static bool check(const VendorMail *mail, const VendorAccount *account, Template *ret, Error *err)
{
    if (mail->reference.len == 0) {
        return vendor_check_text(&meta_api, mail, account, META_TEXT_MAX, err);
    }
    return vendor_check_account(&meta_api, account, err) && vendor_check_phone(mail, err) &&
           read_template(mail->reference, ret, err) && check_parameters(mail, ret, err);
}

bool meta_build(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err)
{
    (void)now_us;
    Template template;
    if (!check(mail, account, &template, err) ||
        !begin(account, "POST", "/messages", arena, ret, err)) {
        return false;
    }
    json_t *root = json_object();
    vendor_json_put_str(root, "messaging_product", STR("whatsapp"));
    vendor_json_put_str(root, "recipient_type", STR("individual"));
    vendor_json_put_str(root, "to", str_slice(mail->to.address, 1, mail->to.address.len));
    if (mail->reference.len > 0) {
        put_template(root, mail, &template, arena);
    } else {
        put_text(root, mail);
    }
    vendor_json_put_str(root, "biz_opaque_callback_data", vendor_attempt_ref(mail, arena));
    vendor_set_json(ret, root, arena);
    return true;
}

bool meta_test(
    const VendorAccount *account, int64_t now_us, Arena *arena, VendorRequest *ret, Error *err)
{
    (void)now_us;
    return vendor_check_account(&meta_api, account, err) &&
           begin(account, "GET", "?fields=id", arena, ret, err);
}
