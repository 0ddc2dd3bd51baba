// SPDX-License-Identifier: Apache-2.0
#include "services/renderer/footer.h"

#include <string.h>

#include "common/render/html_text.h"

enum { ADDRESS_BYTES_MAX = 4096 };

static const char NAME[] = "physical_address";

// ---- the link ----

bool opt_out_links_init(
    OptOutLinks *links, const MasterKey *master, const char *url, Arena *arena, Error *err)
{
    opt_out_key(master, &links->key);
    return public_url_read(url, arena, &links->public_url, err);
}

const char *opt_out_link(const OptOutLinks *links, const Job *job)
{
    const Request *request = job->request;
    if (links->public_url.len == 0 || category_ignores_opt_out((Category)request->category) ||
        request->channel != STENTOR__V1__CHANNEL__CHANNEL_EMAIL ||
        request->address_hash.len != ADDRESS_HASH_LEN) {
        return "";
    }
    OptOut what = {
        .tenant = str_from(request->meta->tenant),
        .notification_id = str_from(request->meta->notification_id),
        .recipient_id = str_from(request->recipient_id),
        .channel = (Channel)request->channel,
        .category = (Category)request->category,
        // Not the current time: a second rendering after a crash makes the same mail.
        .issued_at_us =
            request->scheduled_for_us > 0 ? request->scheduled_for_us : request->accepted_at_us,
    };
    memcpy(what.address_hash, request->address_hash.data, ADDRESS_HASH_LEN);
    char token[OPT_OUT_TOKEN_SIZE];
    if (!opt_out_sign(&links->key, &what, token, NULL)) {
        return "";
    }
    return arena_printf(job->arena, STR_FMT "/v1/opt-out/%s", STR_ARG(links->public_url), token);
}

const char *preferences_link(const OptOutLinks *links, const char *link, Arena *arena)
{
    size_t before = links->public_url.len + strlen("/v1/opt-out/");
    return link[0] == '\0' ? ""
                           : arena_printf(
                                 arena, STR_FMT "/v1/preferences/%s", STR_ARG(links->public_url),
                                 link + before);
}

// ---- variables ----

static void set_variable(json_t *variables, const char *name, const char *value)
{
    if (value[0] != '\0' || json_object_get(variables, name) == NULL) {
        (void)json_object_set_new(variables, name, json_string(value));
    }
}

void footer_variables(
    json_t *variables, const char *link, const char *preferences, const char *physical_address)
{
    set_variable(variables, "unsubscribe_url", link);
    set_variable(variables, "preferences_url", preferences);
    set_variable(variables, NAME, physical_address);
}

// ---- the address ----

static bool shows_address(const Stentor__V1__TemplateVersion *version, const char *locale)
{
    for (size_t i = 0; i < version->n_locales; i++) {
        const Stentor__V1__LocaleVariant *variant = version->locales[i];
        if (strcmp(variant->locale, locale) == 0 &&
            (strstr(variant->html, NAME) != NULL || strstr(variant->text, NAME) != NULL)) {
            return true;
        }
    }
    for (size_t i = 0; i < version->n_partials; i++) {
        if (strstr(version->partials[i]->source, NAME) != NULL) {
            return true;
        }
    }
    return false;
}

static void add_html_char(Buf *out, char c)
{
    switch (c) {
    case '&':
        buf_cstr(out, "&amp;");
        break;
    case '<':
        buf_cstr(out, "&lt;");
        break;
    case '>':
        buf_cstr(out, "&gt;");
        break;
    case '"':
        buf_cstr(out, "&quot;");
        break;
    case '\r':
        break;
    case '\n':
        buf_cstr(out, "<br>");
        break;
    default:
        buf_char(out, c);
    }
}

static bool add_html(Buf *html, const char *address)
{
    size_t at = html_end_of_body(buf_view(html));
    Buf tail;
    buf_init(&tail, html->max);
    bool ok = buf_append(&tail, html->ptr + at, html->len - at);
    html->len = at;
    buf_cstr(html, "<p style=\"font-size:12px\">");
    for (const char *c = address; *c != '\0'; c++) {
        add_html_char(html, *c);
    }
    buf_cstr(html, "</p>");
    buf_str(html, buf_view(&tail));
    buf_done(&tail);
    return ok && !html->full;
}

bool footer_is_wanted(const Request *request, bool in_every)
{
    return request->channel == STENTOR__V1__CHANNEL__CHANNEL_EMAIL &&
           (in_every || !category_ignores_opt_out((Category)request->category));
}

bool footer_add(
    Draft *draft, const Stentor__V1__TemplateVersion *version, const char *locale,
    const char *physical_address, RenderFailure *failure)
{
    if (physical_address[0] == '\0' || shows_address(version, locale)) {
        return true;
    }
    bool ok = strlen(physical_address) <= ADDRESS_BYTES_MAX;
    if (ok && draft->html.len > 0) {
        ok = add_html(&draft->html, physical_address);
    }
    if (ok && draft->text.len > 0) {
        buf_cstr(&draft->text, "\n\n");
        buf_cstr(&draft->text, physical_address);
        ok = buf_char(&draft->text, '\n');
    }
    return ok || render_fail(
                     failure, FAILURE_RENDER, "no room for the sender's physical address below it");
}
