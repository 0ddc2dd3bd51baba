// SPDX-License-Identifier: Apache-2.0
// POST /v1/attachments/objects: the file is an object of a place (attachment_places.h). It is read
// once, now: what is sent later is our sealed copy, whatever becomes of the object.
#include <string.h>

#include "common/api/api_json.h"
#include "common/base/log.h"
#include "services/gateway/attachments/attachments_api.h"

enum { FETCHES_MAX = 8, SHA256_HEX = 2 * SHA256_LEN, TYPE_MAX = 255, NAME_MAX_BYTES = 512 };

// Lives in the request's arena.
typedef struct Fetch {
    ApiCall *call;
    AttachmentsApi *api;
    Str place, object, name, type, sha256;
    int64_t size;
    char *bytes; // of `size`
    size_t got;
    bool more; // it has more than that
} Fetch;

static bool on_piece(void *ctx, const void *bytes, size_t len)
{
    Fetch *fetch = ctx;
    size_t room = (size_t)fetch->size - fetch->got;
    fetch->more = len > room;
    size_t taken = fetch->more ? room : len;
    if (taken > 0) {
        memcpy(fetch->bytes + fetch->got, bytes, taken);
    }
    fetch->got += taken;
    return !fetch->more;
}

static bool has_sum(const Fetch *fetch)
{
    uint8_t sum[SHA256_LEN];
    char hex[SHA256_HEX + 1];
    sha256(str_of(fetch->bytes, fetch->got), sum);
    hex_encode(sum, SHA256_LEN, hex);
    return str_eq_nocase(fetch->sha256, str_from(hex));
}

static void take_object(Fetch *fetch)
{
    AttachmentFile file = {fetch->name, fetch->type, str_of(fetch->bytes, fetch->got)};
    if (fetch->more || (int64_t)fetch->got != fetch->size) {
        (void)api_refuse_field(
            fetch->call, "size_bytes", "the object has %s %lld bytes",
            fetch->more ? "more than" : "only", (long long)fetch->got);
    } else if (!has_sum(fetch)) {
        (void)api_refuse_field(fetch->call, "sha256", "the object has other bytes");
    } else {
        attachment_store(fetch->call, fetch->api, &file);
    }
}

static void on_fetched(void *ctx, StorageOutcome outcome, const StorageInfo *info, const Error *err)
{
    Fetch *fetch = ctx;
    (void)info;
    fetch->api->fetching--;
    if (outcome == STORAGE_ABSENT) {
        (void)api_refuse_field(
            fetch->call, "object", "is not in place '" STR_FMT "'", STR_ARG(fetch->place));
    } else if (outcome == STORAGE_FAILED) {
        LOG(LOG_WARN, "an object was not read for an attachment", log_str("place", fetch->place),
            log_error(err));
        http_problem(
            fetch->call->http, 503, "place-unavailable", "The object cannot be read now", NULL,
            "the place does not answer, or refuses the operator's credentials: the gateway's log "
            "says which");
    } else {
        take_object(fetch);
    }
}

static bool read_fields(ApiBody *body, Fetch *fetch, int64_t bytes_max)
{
    (void)api_read_text(body, "place", ATTACHMENT_PLACE_NAME_MAX, &fetch->place);
    (void)api_read_text(body, "object", STORAGE_KEY_MAX, &fetch->object);
    (void)api_read_text(body, "name", NAME_MAX_BYTES, &fetch->name);
    (void)api_read_text(body, "content_type", TYPE_MAX, &fetch->type);
    (void)api_read_text(body, "sha256", SHA256_HEX, &fetch->sha256);
    (void)api_read_int(body, "size_bytes", 1, bytes_max, &fetch->size);
    uint8_t sum[SHA256_LEN];
    size_t len = 0;
    if (!hex_decode(fetch->sha256, sum, sizeof sum, &len) || len != sizeof sum) {
        (void)api_body_fail(body, "sha256", "required: 64 hexadecimal digits, of the bytes");
    }
    if (fetch->size == 0) {
        (void)api_body_fail(body, "size_bytes", "required: 1 to %lld", (long long)bytes_max);
    }
    Error wrong = {0};
    if (!storage_key_check(fetch->object, &wrong)) {
        (void)api_body_fail(body, "object", "required, below the place: %s", wrong.text);
    }
    return api_body_end(body);
}

static void begin_fetch(Fetch *fetch)
{
    ApiCall *call = fetch->call;
    AttachmentFile file = {fetch->name, fetch->type, STR_EMPTY};
    Storage *storage =
        attachment_places_find(fetch->api->places, fetch->place, str_from(call->tenant));
    if (storage == NULL) {
        (void)api_refuse_field(
            call, "place",
            "not a place of this tenant (HINT: an operator names places in "
            "STENTOR_GATEWAY_ATTACHMENT_PLACES)");
        return;
    }
    if (!attachment_may_be_stored(call, fetch->api, &file, "content_type")) {
        return;
    }
    if (fetch->api->fetching >= FETCHES_MAX) {
        metric_add(call->metrics->refused[REFUSED_UNAVAILABLE], 1);
        http_problem(
            call->http, 503, "busy", "Too many objects are being read", NULL,
            "try again in a moment");
        return;
    }
    fetch->api->fetching++;
    fetch->bytes = arena_alloc(call->http->arena, (size_t)fetch->size);
    storage_get(storage, fetch->object, 0, 0, on_piece, on_fetched, fetch);
}

static void post_object(ApiCall *call)
{
    AttachmentsApi *api = call->ctx;
    ApiBody body = {0};
    Fetch *fetch = arena_zalloc(call->http->arena, sizeof *fetch);
    fetch->call = call;
    fetch->api = api;
    fetch->place = fetch->object = fetch->name = fetch->type = fetch->sha256 = STR_EMPTY;
    bool ok = api_body_parse(&body, call->http->body, call->http->arena) &&
              read_fields(&body, fetch, api->bytes_max);
    if (!ok) {
        api_answer_problem(call, &body.problem);
    } else {
        begin_fetch(fetch);
    }
    api_body_free(&body);
}

static const ApiRoute ROUTES[] = {
    {"POST", "/v1/attachments/objects", SCOPE_NOTIFICATIONS_SEND, post_object, NULL, false},
};

void attachment_objects_add(Api *api, AttachmentsApi *attachments)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], attachments);
}
