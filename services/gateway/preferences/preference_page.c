// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/preferences/preference_page.h"

#include <string.h>

// ---- HTML ----

static const char *label_of(Category category)
{
    switch (category) {
    case CATEGORY_MARKETING:
        return "Offers and news";
    case CATEGORY_SOCIAL:
        return "What other people do";
    case CATEGORY_REMINDER:
        return "Reminders";
    case CATEGORY_BILLING:
        return "Invoices and payments";
    case CATEGORY_OPERATIONAL:
        return "How the service runs";
    case CATEGORY_SYSTEM:
        return "Notices of the system";
    case CATEGORY_ACADEMIC:
        return "Courses and grades";
    case CATEGORY_NONE:
    case CATEGORY_TRANSACTIONAL:
    case CATEGORY_SECURITY:
    case CATEGORY_COMPLIANCE:
    case CATEGORY_COUNT:
        break;
    }
    return category_name(category);
}

static void put_choice(Buf *out, const PreferenceChoice *choice, bool names_channel)
{
    const char *category = category_name(choice->category);
    const char *channel = channel_name(choice->channel);
    buf_printf(
        out,
        "<p><label><input type=\"checkbox\" name=\"on\" value=\"%s.%s\"%s> %s%s%s%s</label></p>",
        category, channel, choice->on ? " checked" : "", label_of(choice->category),
        names_channel ? " (" : "", names_channel ? channel : "", names_channel ? ")" : "");
}

static bool has_other_channels(const PreferenceChoice *choices, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (choices[i].channel != CHANNEL_EMAIL) {
            return true;
        }
    }
    return false;
}

void preference_page_html(Buf *out, const PreferenceChoice *choices, size_t count, bool stored)
{
    buf_cstr(
        out, "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">"
             "<meta name=\"viewport\" content=\"width=device-width\"><title>Your choices</title>"
             "</head><body style=\"font-family:sans-serif;max-width:32em;margin:3em auto;padding:0 "
             "1em\"><h1>Your choices</h1>");
    buf_cstr(out, stored ? "<p><strong>Your choices are stored.</strong></p>" : "");
    buf_cstr(out, "<p>What would you like to get?</p><form method=\"post\">");
    for (size_t i = 0; i < count; i++) {
        put_choice(out, &choices[i], has_other_channels(choices, count));
    }
    buf_cstr(
        out, "<p><button type=\"submit\" name=\"do\" value=\"save\">Save</button> "
             "<button type=\"submit\" name=\"do\" value=\"none\">Nothing of this</button> "
             "<button type=\"submit\" name=\"do\" value=\"all\">All of this</button></p></form>"
             "<p>Receipts, security notices and what the law asks for are sent in any case.</p>"
             "</body></html>");
}

// ---- JSON ----

void preference_page_json(Buf *out, const PreferenceChoice *choices, size_t count)
{
    buf_cstr(out, "{\"preferences\":[");
    for (size_t i = 0; i < count; i++) {
        buf_printf(
            out, "%s{\"category\":\"%s\",\"channel\":\"%s\",\"on\":%s}", i > 0 ? "," : "",
            category_name(choices[i].category), channel_name(choices[i].channel),
            choices[i].on ? "true" : "false");
    }
    buf_cstr(out, "]}");
}

// ---- what comes back ----

static PreferenceChoice *find(PreferenceChoice *choices, size_t count, Str category, Str channel)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq(category, str_from(category_name(choices[i].category))) &&
            str_eq(channel, str_from(channel_name(choices[i].channel)))) {
            return &choices[i];
        }
    }
    return NULL;
}

static void set_all(PreferenceChoice *choices, size_t count, bool on)
{
    for (size_t i = 0; i < count; i++) {
        choices[i].on = on;
    }
}

// One that is not shown any more (an address that is gone) is passed over.
static bool take_on(Str value, PreferenceChoice *choices, size_t count)
{
    ptrdiff_t dot = str_find(value, '.');
    if (dot < 0) {
        return false;
    }
    PreferenceChoice *choice = find(
        choices, count, str_slice(value, 0, (size_t)dot),
        str_slice(value, (size_t)dot + 1, value.len));
    if (choice != NULL) {
        choice->on = true;
    }
    return true;
}

bool preference_form_read(Str form, PreferenceChoice *choices, size_t count)
{
    Str todo = STR_EMPTY;
    Str rest = form;
    Str pair;
    set_all(choices, count, false);
    while (rest.len > 0) {
        ptrdiff_t end = str_find(rest, '&');
        pair = end < 0 ? rest : str_slice(rest, 0, (size_t)end);
        rest = end < 0 ? STR_EMPTY : str_slice(rest, (size_t)end + 1, rest.len);
        if (str_starts(pair, STR("do="))) {
            todo = str_slice(pair, 3, pair.len);
        } else if (
            !str_starts(pair, STR("on=")) ||
            !take_on(str_slice(pair, 3, pair.len), choices, count)) {
            return false;
        }
    }
    if (str_eq(todo, STR("none")) || str_eq(todo, STR("all"))) {
        set_all(choices, count, str_eq(todo, STR("all")));
        return true;
    }
    return str_eq(todo, STR("save"));
}

static bool take_object(
    ApiBody *body, const json_t *object, PreferenceChoice *choices, size_t count)
{
    const json_t *on = json_object_get(object, "on");
    PreferenceChoice *choice = find(
        choices, count, str_from(json_string_value(json_object_get(object, "category"))),
        str_from(json_string_value(json_object_get(object, "channel"))));
    if (choice == NULL || !json_is_boolean(on)) {
        return api_body_fail(
            body, "preferences",
            "each is {\"category\", \"channel\", \"on\": true or false} of those that GET shows");
    }
    choice->on = json_is_true(on);
    return true;
}

bool preference_json_read(ApiBody *body, PreferenceChoice *choices, size_t count)
{
    json_t *list = NULL;
    json_t *object = NULL;
    size_t i = 0;
    if (!api_read_array(body, "preferences", CHOICES_MAX, &list)) {
        return false;
    }
    if (list == NULL) {
        return api_body_fail(body, "preferences", "required: an array");
    }
    json_array_foreach(list, i, object)
    {
        if (!take_object(body, object, choices, count)) {
            return false;
        }
    }
    return api_body_end(body);
}
