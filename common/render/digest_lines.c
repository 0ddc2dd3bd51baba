// SPDX-License-Identifier: Apache-2.0
#include "common/render/digest_lines.h"

enum { SUBJECT_MAX = 998 }; // RFC 5322: a line

static bool write_line(
    TemplateCache *templates, const Job *job, const Sender *sender, const ContentContext *context,
    const Stentor__V1__DigestItem *item, json_t *own, Buf *line)
{
    const Stentor__V1__NotificationRequest *request = job->request;
    TemplateName wanted_version = template_name_of(request); // a window is of one channel
    wanted_version.key = str_from(item->template_);
    wanted_version.version = str_from(item->template_version);
    wanted_version.asked_at_us = item->accepted_at_us;
    const CompiledVersion *version = template_cache_get(templates, &wanted_version);
    if (version == NULL || version->broken.kind != ERROR_NONE) {
        return false;
    }
    Str wanted = str_from(request->locale);
    const CompiledLocale *locale =
        version_locale(version, wanted.len > 0 ? wanted : str_from(sender->locale));
    json_t *variables = json_copy(own);
    add_surroundings(variables, locale, sender->theme, sender->names);
    bool ok = render_subject_line(locale, variables, context, line);
    json_decref(variables);
    return ok;
}

void digest_subject_lines(
    TemplateCache *templates, const Job *job, const Sender *sender, const ContentContext *context,
    json_t *variables)
{
    json_t *list = json_object_get(variables, "list");
    size_t i;
    json_t *own;
    Buf line;
    buf_init(&line, SUBJECT_MAX);
    json_array_foreach(list, i, own)
    {
        if (json_object_get(own, "subject_line") == NULL &&
            write_line(
                templates, job, sender, context, job->request->digest_items[i], own, &line)) {
            (void)json_object_set_new(own, "subject_line", json_stringn(line.ptr, line.len));
        }
    }
    buf_done(&line);
}
