// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/why/content_view.h"

#include "common/base/clock.h"
#include "common/model/channel_address.h"
#include "common/model/enums.h"

static void put_text(Buf *out, const char *before, const char *name, Str value)
{
    if (value.len > 0) {
        buf_printf(out, "%s\"%s\":", before, name);
        buf_json(out, value);
    }
}

// ---- what a mail has beside its text ----

static void put_addresses(
    Buf *out, const char *name, Stentor__V1__Address *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        Buf masked;
        buf_init(&masked, PEOPLE_ADDRESS_MAX);
        people_address_mask(CHANNEL_EMAIL, str_from(list[i]->address), &masked);
        if (i == 0) {
            buf_printf(out, ",\"%s\":[", name);
        }
        buf_cstr(out, i == 0 ? "" : ",");
        buf_json(out, buf_view(&masked));
        buf_done(&masked);
    }
    buf_cstr(out, count > 0 ? "]" : "");
}

static void put_attachments(Buf *out, Stentor__V1__Attachment *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        buf_cstr(out, i == 0 ? ",\"attachments\":[{" : ",{");
        buf_printf(out, "\"size_bytes\":%u", list[i]->size_bytes);
        put_text(out, ",", "name", str_from(list[i]->name));
        put_text(out, ",", "content_type", str_from(list[i]->content_type));
        put_text(out, ",", "content_id", str_from(list[i]->content_id));
        buf_char(out, '}');
    }
    buf_cstr(out, count > 0 ? "]" : "");
}

static void put_mail(Buf *out, const Stentor__V1__EmailContent *mail)
{
    const struct {
        const char *name, *value;
    } texts[] = {
        {"subject", mail->subject},     {"text", mail->text},
        {"html", mail->html},           {"from", mail->from},
        {"from_name", mail->from_name}, {"reply_to", mail->reply_to},
        {"list_id", mail->list_id},     {"unsubscribe_url", mail->unsubscribe_url},
    };
    buf_cstr(out, "{\"kind\":\"email\"");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        put_text(out, ",", texts[i].name, str_from(texts[i].value));
    }
    put_addresses(out, "cc", mail->cc, mail->n_cc);
    put_addresses(out, "bcc", mail->bcc, mail->n_bcc);
    put_attachments(out, mail->attachments, mail->n_attachments);
    buf_char(out, '}');
}

// ---- the other channels: texts, lists of texts and numbers ----

static void put_list(Buf *out, const char *name, char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (i == 0) {
            buf_printf(out, ",\"%s\":[", name);
        }
        buf_cstr(out, i == 0 ? "" : ",");
        buf_json(out, str_from(list[i]));
    }
    buf_cstr(out, count > 0 ? "]" : "");
}

static void put_field(
    Buf *out, const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    const char *at = (const char *)message + field->offset;
    if (field->type == PROTOBUF_C_TYPE_STRING && field->label == PROTOBUF_C_LABEL_REPEATED) {
        size_t count =
            *(const size_t *)(const void *)((const char *)message + field->quantifier_offset);
        put_list(out, field->name, *(char *const *const *)(const void *)at, count);
    } else if (field->type == PROTOBUF_C_TYPE_STRING) {
        put_text(out, ",", field->name, str_from(*(const char *const *)(const void *)at));
    } else if (field->type == PROTOBUF_C_TYPE_UINT32) {
        buf_printf(out, ",\"%s\":%u", field->name, *(const uint32_t *)(const void *)at);
    } else if (field->type == PROTOBUF_C_TYPE_BOOL) {
        bool set = *(const protobuf_c_boolean *)(const void *)at != 0;
        buf_printf(out, ",\"%s\":%s", field->name, set ? "true" : "false");
    }
}

static void put_content(Buf *out, Channel channel, const ProtobufCMessage *content)
{
    if (channel == CHANNEL_EMAIL) {
        put_mail(out, (const Stentor__V1__EmailContent *)content);
        return;
    }
    buf_printf(out, "{\"kind\":\"%s\"", channel_name(channel));
    for (unsigned i = 0; i < content->descriptor->n_fields; i++) {
        put_field(out, content, &content->descriptor->fields[i]);
    }
    buf_char(out, '}');
}

void content_print(
    Buf *out, const Stentor__V1__Rendered *event, const ContentOpened *opened, Str status)
{
    char rendered_at[CLOCK_RFC3339_SIZE];
    Channel channel = (Channel)event->channel;
    clock_format(event->rendered_at_us, rendered_at);
    put_text(out, "{", "id", str_from(event->meta->notification_id));
    put_text(out, ",", "status", status);
    put_text(out, ",", "channel", str_from(channel_name(channel)));
    put_text(out, ",", "template", str_from(event->template_));
    put_text(out, ",", "template_version", str_from(event->template_version));
    put_text(out, ",", "locale", str_from(event->locale));
    if (opened->address != NULL) {
        Buf masked;
        buf_init(&masked, PEOPLE_ADDRESS_MAX);
        people_address_mask(channel, str_from(opened->address->address), &masked);
        put_text(out, ",", "to", buf_view(&masked));
        buf_done(&masked);
    }
    put_text(out, ",", "rendered_at", str_from(rendered_at));
    buf_cstr(out, ",\"content\":");
    put_content(out, channel, opened->content);
    buf_char(out, '}');
}
