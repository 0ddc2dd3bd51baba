// SPDX-License-Identifier: Apache-2.0
#include "services/cli/erase/export_contents.h"

#include "common/base/clock.h"
#include "common/content/content_open.h"
#include "services/cli/content/content_cli.h"
#include "services/cli/operate/dlq_show.h"

static json_t *content_json(const char *id, const ContentFound *found, const ContentOpened *opened)
{
    char rendered[CLOCK_RFC3339_SIZE] = "";
    clock_format(found->event->rendered_at_us, rendered);
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:o}", "notification_id", id, "rendered_at", rendered, "channel",
        channel_name((Channel)found->event->channel), "locale", found->event->locale, "content",
        event_json(opened->content));
}

// Not kept any more, of an erased key or of another person's: nothing is added.
static bool add_content(
    ContentSession *session, AccessExport *export, const char *id, json_t *list, Error *err)
{
    const ErasurePerson *person = export->person;
    const char *tenant = person->tenant;
    ContentRow row;
    ContentFound found;
    ContentOpened opened;
    Error why = {0};
    if (!content_row(session, tenant, id, &row, err) ||
        !content_find(session, tenant, id, &row, &found, err)) {
        return error_wrap(err, "content of '%s'", id);
    }
    if (found.event == NULL || !person_keys_of_person(person, found.event->content)) {
        return true; // the session's keyring would open anyone's
    }
    if (content_open(session, found.event, &opened, &why)) {
        access_append(export, list, content_json(id, &found, &opened));
        return true;
    }
    if (why.kind != ERROR_PERMANENT) {
        *err = why;
        return false;
    }
    return true;
}

static bool add_all(ContentSession *session, AccessExport *export, json_t *list, Error *err)
{
    const json_t *notifications = json_object_get(export->root, "notifications");
    size_t count = json_array_size(notifications);
    size_t first = count > EXPORT_CONTENTS_MAX ? count - EXPORT_CONTENTS_MAX : 0;
    for (size_t i = first; i < count; i++) { // in the order of their ids, so of their times
        const json_t *row = json_array_get(notifications, i);
        const char *id = json_string_value(json_object_get(row, "id"));
        bool rendered = json_is_string(json_object_get(row, "rendered_at")) ||
                        json_is_string(json_object_get(row, "sent_at"));
        if (rendered && !add_content(session, export, id, list, err)) {
            return false;
        }
    }
    if (first > 0) {
        json_array_append_new(
            json_object_get(export->root, "gaps"),
            json_pack(
                "{s:o, s:s, s:s}", "what",
                json_sprintf("contents of the %zu oldest notifications: stentor content ID", first),
                "where", "", "sha256", ""));
    }
    return true;
}

bool export_contents(Cli *cli, AccessExport *export, Error *err)
{
    ContentLinks links = {0};
    json_t *list = json_array();
    bool ok = content_links_open(cli, &links, err) && add_all(&links.session, export, list, err);
    content_links_close(&links);
    json_object_set_new(export->root, "contents", list);
    access_end_section(export, "contents");
    return ok;
}
