// SPDX-License-Identifier: Apache-2.0
// Killed after the object is stored: it is there and no id names it, so nothing can read it; it is
// removed with the others of its day.
#include "services/gateway/attachments/attachments_api.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/codec/attachment.h"
#include "common/mime/mime.h"

// Lives in the request's arena.
typedef struct Upload {
    ApiCall *call;
    AttachmentsApi *api;
    AssetStoring storing;
    Stentor__V1__Attachment file;
    uint8_t sha256[SHA256_LEN];
    uint8_t key[ATTACHMENT_KEY_LEN];
} Upload;

// ---- what may be stored ----

// What mailboxes refuse to deliver, or a double click would run.
static bool is_program_name(Str name)
{
    static const char *const endings[] = {
        ".ade", ".adp", ".apk", ".appx", ".bat", ".cab", ".chm", ".cmd", ".com", ".cpl", ".dll",
        ".dmg", ".exe", ".hta", ".ins",  ".iso", ".isp", ".jar", ".js",  ".jse", ".lib", ".lnk",
        ".mde", ".msc", ".msi", ".msp",  ".mst", ".nsh", ".pif", ".ps1", ".scr", ".sct", ".sh",
        ".sys", ".vb",  ".vbe", ".vbs",  ".vhd", ".vxd", ".wsc", ".wsf", ".wsh",
    };
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t len = strlen(endings[i]);
        if (name.len >= len &&
            str_eq_nocase(str_slice(name, name.len - len, name.len), str_from(endings[i]))) {
            return true;
        }
    }
    return false;
}

const char *attachment_refusal(Str name, Str type, Str bytes)
{
    static const char *const types[] = {
        "application/x-msdownload", "application/x-msdos-program", "application/x-executable",
        "application/x-sh",         "application/java-archive",    "application/javascript",
        "text/javascript",
    };
    bool program = is_program_name(name) || str_starts(bytes, STR("MZ")) ||
                   str_starts(
                       bytes, STR("\x7f"
                                  "ELF")) ||
                   str_starts(bytes, STR("#!"));
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        program = program || str_eq_nocase(type, str_from(types[i]));
    }
    return program ? "a program: mailboxes refuse mails with one" : NULL;
}

static bool has_storage(ApiCall *call, const AttachmentsApi *api)
{
    if (asset_objects_ready(api->objects)) {
        return true;
    }
    metric_add(call->metrics->refused[REFUSED_UNAVAILABLE], 1);
    http_problem(
        call->http, 503, "no-storage", "There is no object storage", NULL,
        "attachments rest in object storage: the operator sets STENTOR_STORAGE_URL of gateway and "
        "dispatcher to a folder or a bucket (deploy/PRODUCTION.md)");
    return false;
}

bool attachment_may_be_stored(
    ApiCall *call, const AttachmentsApi *api, const AttachmentFile *file, const char *type_field)
{
    if (!mime_file_name_check(file->name)) {
        return api_refuse_field(
            call, "name", "required, 1 to %d bytes without a path, such as 'invoice.pdf'",
            (int)MIME_FILE_NAME_MAX);
    }
    if (!mime_type_check(file->type)) {
        return api_refuse_field(
            call, type_field, "required, without parameters, such as 'application/pdf'");
    }
    return has_storage(call, api);
}

// ---- storing ----

static void answer(Upload *upload)
{
    ApiCall *call = upload->call;
    Arena *arena = call->http->arena;
    char until[CLOCK_RFC3339_SIZE];
    char hex[2 * SHA256_LEN + 1];
    DataKey *key = data_key_for_tenant(upload->api->master, str_from(call->tenant));
    const char *id = attachment_id_make(key, str_from(call->tenant), &upload->file, arena);
    data_key_free(key);
    clock_format(
        upload->file.stored_at_us + ATTACHMENT_USED_WITHIN_DAYS * INT64_C(86400000000), until);
    hex_encode(upload->sha256, SHA256_LEN, hex);
    if (id == NULL) {
        Error err = {0};
        (void)error_set(&err, ERROR_PERMANENT, "the attachment's id cannot be made");
        api_answer_failure(call, &err);
        return;
    }
    api_answer_json(
        call, 201,
        json_pack(
            "{s:s,s:s,s:s,s:I,s:s,s:s}", "id", id, "name", upload->file.name, "content_type",
            upload->file.content_type, "size_bytes", (json_int_t)upload->file.size_bytes, "sha256",
            hex, "use_until", until));
}

static void on_stored(void *ctx, const Error *err)
{
    Upload *upload = ctx;
    if (err != NULL) {
        api_answer_failure(upload->call, err);
    } else {
        answer(upload);
    }
}

static void fill_file(Upload *upload, const AttachmentFile *from)
{
    ApiCall *call = upload->call;
    Arena *arena = call->http->arena;
    Stentor__V1__Attachment *file = &upload->file;
    char id[ID_SIZE];
    stentor__v1__attachment__init(file);
    id_new("att_", call->http->received_at_us, id);
    file->id = arena_cstr(arena, str_from(id));
    file->name = arena_cstr(arena, from->name);
    file->content_type = arena_cstr(arena, from->type);
    file->size_bytes = (uint32_t)from->bytes.len;
    sha256(from->bytes, upload->sha256);
    file->sha256 = (ProtobufCBinaryData){SHA256_LEN, upload->sha256};
    file->key = (ProtobufCBinaryData){ATTACHMENT_KEY_LEN, upload->key};
    file->stored_at_us = call->http->received_at_us;
    char object[ATTACHMENT_OBJECT_SIZE];
    attachment_object(
        str_from(call->tenant), str_from(id + STR("att_").len), file->stored_at_us, object);
    file->object = arena_cstr(arena, str_from(object));
}

void attachment_store(ApiCall *call, AttachmentsApi *api, const AttachmentFile *file)
{
    const char *refusal = attachment_refusal(file->name, file->type, file->bytes);
    if (refusal != NULL) {
        (void)api_refuse_field(call, "body", "%s", refusal);
        return;
    }
    Upload *upload = arena_zalloc(call->http->arena, sizeof *upload);
    upload->call = call;
    upload->api = api;
    fill_file(upload, file);
    upload->storing = (AssetStoring){
        .objects = api->objects,
        .bytes = attachment_seal(file->bytes, upload->key, call->http->arena),
        .on_stored = on_stored,
        .ctx = upload,
    };
    sha256(upload->storing.bytes, upload->storing.sha256);
    (void)str_to_c(str_from(upload->file.object), upload->storing.key, sizeof upload->storing.key);
    asset_objects_put(&upload->storing);
}

static void post_attachment(ApiCall *call)
{
    AttachmentsApi *api = call->ctx;
    Str body = call->http->body;
    AttachmentFile file = {
        http_query(call->http, "name"), http_header(call->http, "Content-Type"), body};
    if (body.len == 0 || (int64_t)body.len > api->bytes_max) {
        (void)api_refuse_field(
            call, "body", "%zu bytes; 1 to %lld are allowed", body.len, (long long)api->bytes_max);
    } else if (attachment_may_be_stored(call, api, &file, "Content-Type")) {
        attachment_store(call, api, &file);
    }
}

static const ApiRoute ROUTES[] = {
    {"POST", "/v1/attachments", SCOPE_NOTIFICATIONS_SEND, post_attachment, "name", false},
};

void attachments_api_add(Api *api, AttachmentsApi *attachments)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], attachments);
    attachment_objects_add(api, attachments);
}
