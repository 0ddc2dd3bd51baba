// SPDX-License-Identifier: Apache-2.0
#include "common/render/tracking.h"

#include <string.h>

#include "common/render/html_tag.h"
#include "common/render/html_text.h"

typedef struct Rewrite {
    const Tracking *tracking;
    Str html;
    Buf *out;
    size_t copied; // of html
    size_t added;
    uint32_t links; // seen, tracked or not: a link's number does not depend on the room
    size_t tracked;
    bool seals; // `sealer` is made, at the mail's first link
    MailLinkSealer sealer;
} Rewrite;

// ---- one link ----

static void put_character(Buf *out, uint32_t c)
{
    if (c < 0x80) {
        buf_char(out, (char)c);
        return;
    }
    unsigned char bytes[4];
    size_t len = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = len - 1; i > 0; i--) {
        bytes[i] = (unsigned char)(0x80 | (c & 0x3f));
        c >>= 6;
    }
    static const unsigned char heads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    bytes[0] = (unsigned char)(heads[len] | c);
    buf_append(out, bytes, len);
}

// The attribute's value as the browser reads it: "a?x=1&amp;y=2" is a?x=1&y=2.
static void decode(Str value, Buf *out)
{
    for (size_t at = 0; at < value.len;) {
        size_t len = 0;
        uint32_t c = value.ptr[at] == '&' ? html_entity(str_slice(value, at, value.len), &len) : 0;
        if (len > 0) {
            put_character(out, c);
            at += len;
        } else {
            buf_char(out, value.ptr[at++]);
        }
    }
}

static bool is_untouched(const Tracking *tracking, Str url)
{
    for (size_t i = 0; i < tracking->untouched_count; i++) {
        if (tracking->untouched[i].len > 0 && str_starts(url, tracking->untouched[i])) {
            return true;
        }
    }
    return false;
}

static bool seal_link(
    Rewrite *rewrite, MailLinkKind kind, uint32_t index, Str url, char out[MAIL_LINK_TOKEN_SIZE])
{
    const Tracking *tracking = rewrite->tracking;
    MailLink link = {
        .kind = kind,
        .tenant = tracking->tenant,
        .notification_id = tracking->notification_id,
        .index = index,
        .issued_at_us = tracking->issued_at_us,
        .url = url,
    };
    if (tracking->who != NULL) {
        memcpy(link.who, tracking->who, MAIL_LINK_WHO_LEN);
    }
    rewrite->seals = rewrite->seals ||
                     mail_link_sealer_init(&rewrite->sealer, tracking->key, tracking->tenant, NULL);
    return rewrite->seals && mail_link_seal(&rewrite->sealer, &link, out, NULL);
}

// `value` is a slice of the html.
static void track(Rewrite *rewrite, Str value)
{
    const Tracking *tracking = rewrite->tracking;
    char token[MAIL_LINK_TOKEN_SIZE];
    Buf text;
    buf_init(&text, MAIL_LINK_URL_MAX + 1);
    decode(str_trim(value), &text);
    Str url = buf_view(&text);
    bool wanted = !text.full && mail_link_is_url(url) && !is_untouched(tracking, url);
    rewrite->links += wanted ? 1 : 0;
    if (wanted && rewrite->links <= TRACKING_LINKS_MAX &&
        seal_link(rewrite, MAIL_LINK_CLICK, rewrite->links, url, token)) {
        size_t more = tracking->url.len + strlen("/v1/click/") + strlen(token);
        if (rewrite->added + more <= TRACKING_ADDED_MAX) {
            size_t from = (size_t)(value.ptr - rewrite->html.ptr);
            buf_str(rewrite->out, str_slice(rewrite->html, rewrite->copied, from));
            buf_str(rewrite->out, tracking->url);
            buf_cstr(rewrite->out, "/v1/click/");
            buf_cstr(rewrite->out, token);
            rewrite->copied = from + value.len;
            rewrite->added += more;
            rewrite->tracked++;
        }
    }
    buf_done(&text);
}

static void take_tag(Rewrite *rewrite, const Tag *tag)
{
    Str value;
    Str off;
    bool link = strcmp(tag->name, "a") == 0 || strcmp(tag->name, "area") == 0;
    if (!link || tag->closes || !html_attribute(tag, "href", &value) || value.len == 0) {
        return;
    }
    if (html_attribute(tag, "clicktracking", &off) && str_eq_nocase(str_trim(off), STR("off"))) {
        return;
    }
    track(rewrite, value);
}

// ---- the mail ----

// Where what begins at `at` with '<' ends.
static size_t pass(Rewrite *rewrite, size_t at)
{
    Str html = rewrite->html;
    if (str_starts(str_slice(html, at, html.len), STR("<!--"))) {
        return html_find(html, at + 4, "-->");
    }
    if (!html_begins_tag(html, at)) {
        return at + 1;
    }
    Tag tag;
    size_t end = html_read_tag(html, at, &tag);
    if (tag.kind == TAG_UNSEEN && !tag.closes && !html_is_void(&tag)) {
        return html_skip_element(html, end, tag.name);
    }
    if (html.ptr[end - 1] == '>') { // one that ends with the mail is none
        take_tag(rewrite, &tag);
    }
    return end;
}

static void add_pixel(Rewrite *rewrite)
{
    const Tracking *tracking = rewrite->tracking;
    char token[MAIL_LINK_TOKEN_SIZE];
    size_t at = html_end_of_body(rewrite->html);
    // A link behind </body> was copied already: then the pixel follows it.
    at = at > rewrite->copied ? at : rewrite->copied;
    if (!seal_link(rewrite, MAIL_LINK_OPEN, 0, STR_EMPTY, token)) {
        return;
    }
    buf_str(rewrite->out, str_slice(rewrite->html, rewrite->copied, at));
    buf_printf(
        rewrite->out,
        "<img src=\"" STR_FMT "/v1/open/%s.gif\" width=\"1\" height=\"1\" alt=\"\" "
        "style=\"display:block;border:0;width:1px;height:1px\">",
        STR_ARG(tracking->url), token);
    rewrite->copied = at;
    rewrite->tracked++;
}

static void walk(Rewrite *rewrite)
{
    Str html = rewrite->html;
    for (size_t at = 0; at < html.len;) {
        const char *next = memchr(html.ptr + at, '<', html.len - at);
        if (next == NULL) {
            return;
        }
        at = pass(rewrite, (size_t)(next - html.ptr));
    }
}

size_t tracking_apply(const Tracking *tracking, Buf *html)
{
    Buf out;
    Rewrite rewrite = {.tracking = tracking, .html = buf_view(html), .out = &out};
    if (tracking->url.len == 0 || html->len == 0 || html->len > TRACKING_HTML_MAX) {
        return 0;
    }
    buf_init(&out, html->max);
    if (tracking->clicks) {
        walk(&rewrite);
    }
    if (tracking->opens) {
        add_pixel(&rewrite);
    }
    if (rewrite.seals) {
        mail_link_sealer_done(&rewrite.sealer);
    }
    buf_str(&out, str_slice(rewrite.html, rewrite.copied, rewrite.html.len));
    bool whole = rewrite.tracked > 0 && !out.full;
    if (whole) {
        buf_clear(html);
        buf_str(html, buf_view(&out));
    }
    buf_done(&out);
    return whole ? rewrite.tracked : 0;
}
