// SPDX-License-Identifier: Apache-2.0
#include "services/ingest/intake/attachments.h"

static const int64_t DAY_US = INT64_C(86400000000);

static bool check_age(
    const AttachmentRules *rules, const Request *request, const Stentor__V1__Attachment *file,
    const char *field, FieldError *err)
{
    if (rules->now_us - file->stored_at_us > ATTACHMENT_USED_WITHIN_DAYS * DAY_US) {
        return field_error(
            err, field, "uploaded more than %d days ago: upload it again",
            (int)ATTACHMENT_USED_WITHIN_DAYS);
    }
    return request->scheduled_for_us <= file->stored_at_us + ATTACHMENT_SENT_WITHIN_DAYS * DAY_US ||
           field_error(
               err, field, "scheduled_for is more than %d days after its upload",
               (int)ATTACHMENT_SENT_WITHIN_DAYS);
}

static bool read_one(
    const AttachmentRules *rules, DataKey *key, const Request *request, size_t index, Arena *arena,
    FieldError *err)
{
    MailAttachment *one = &request->mail->attachments[index];
    const char *field = arena_printf(arena, "attachments[%zu].id", index);
    one->file = attachment_id_read(key, rules->tenant, one->id, arena);
    if (one->file == NULL) {
        return field_error(
            err, field,
            "not the id of an attachment of this tenant, as POST /v1/attachments gave it");
    }
    if (one->shown) {
        one->file->content_id = arena_cstr(arena, one->content_id);
    }
    return check_age(rules, request, one->file, field, err);
}

bool attachments_read(const AttachmentRules *rules, Request *request, Arena *arena, FieldError *err)
{
    if (request->mail == NULL || request->mail->attachment_count == 0) {
        return true;
    }
    int64_t bytes = 0;
    bool ok = true;
    DataKey *key = data_key_for_tenant(rules->master, rules->tenant);
    for (size_t i = 0; ok && i < request->mail->attachment_count; i++) {
        ok = read_one(rules, key, request, i, arena, err);
        bytes += ok ? request->mail->attachments[i].file->size_bytes : 0;
    }
    data_key_free(key);
    if (ok && bytes > rules->bytes_max) {
        return field_error(
            err, "attachments", "%lld bytes together; at most %lld are allowed", (long long)bytes,
            (long long)rules->bytes_max);
    }
    return ok;
}
