// SPDX-License-Identifier: Apache-2.0
// A put in the order in which it happens: the checks, what CONFIG has, the bytes into object
// storage, the entry. Killed between the last two: bytes that no entry names, harmless and kept; a
// repeat of the put meets them.
#include "services/gateway/assets/assets_api.h"

#include <string.h>

#include "common/api/config_read.h"
#include "common/api/config_write.h"
#include "common/api/page.h"
#include "common/api/precondition.h"
#include "common/base/clock.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"

#define KIND "asset"
#define TYPES "PNG, JPEG, GIF or WebP"

// A change on its way to CONFIG; lives in the request's arena.
typedef struct Change {
    ApiCall *call;
    AssetsApi *api;
    Str name;
    Precondition needs;
    uint64_t replaces; // what was read; 0: there never was one
    Str stands;        // its payload; empty: there is none
    AssetStoring storing;
    Stentor__V1__TemplateAsset entry;
} Change;

// ---- answers ----

static json_t *show(const ApiCall *call, Str tenant, const Asset *asset)
{
    const AssetsApi *api = call->ctx;
    char at[CLOCK_RFC3339_SIZE];
    char path[ASSET_PLACE_SIZE];
    AssetPlace place = {.tenant = tenant, .hex = str_from(asset->hex), .type = asset->type};
    asset_path(&place, path);
    clock_format(asset->updated_at_us, at);
    const char *url = arena_printf(call->http->arena, STR_FMT "%s", STR_ARG(api->public_url), path);
    return json_pack(
        "{s:s%,s:s,s:s,s:s,s:I,s:s,s:s,s:s}", "tenant", tenant.ptr, tenant.len, "name", asset->name,
        "url", url, "content_type", asset_type_name(asset->type), "size_bytes",
        (json_int_t)asset->size_bytes, "sha256", asset->hex, "updated_at", at, "updated_by",
        asset->updated_by);
}

static void answer_unknown(ApiCall *call, Str name)
{
    api_answer_missing(
        call, arena_printf(
                  call->http->arena, "template asset '" STR_FMT "'",
                  STR_ARG(str_slice(name, 0, ASSET_NAME_MAX))));
}

static void answer_put(Change *change, int status, Str payload, uint64_t sequence)
{
    ApiCall *call = change->call;
    Error err = {0};
    Str tenant = str_from(call->tenant);
    // The mirror brings it in a moment; until then this process's next call must not meet the old
    // one.
    if (!assets_put(change->api->assets, tenant, change->name, payload, sequence, &err)) {
        api_answer_failure(call, &err);
        return;
    }
    precondition_tag(call, sequence);
    api_answer_json(
        call, status, show(call, tenant, assets_own(change->api->assets, tenant, change->name)));
}

// ---- reading ----

static void get_assets(ApiCall *call)
{
    const AssetsApi *api = call->ctx;
    bool shared = str_eq(http_query(call->http, "platform"), STR("true"));
    Str tenant = shared ? STR("platform") : str_from(call->tenant);
    const Asset **found = NULL;
    Page page;
    if (!page_read(call, PAGE_LIMIT, PAGE_LIMIT_MAX, &page)) {
        return;
    }
    size_t count =
        assets_list(api->assets, tenant, page.after, page.limit + 1, call->http->arena, &found);
    size_t shown = count > page.limit ? page.limit : count;
    json_t *list = json_array();
    for (size_t i = 0; i < shown; i++) {
        (void)json_array_append_new(list, show(call, tenant, found[i]));
    }
    page_answer(call, list, count > shown ? str_from(found[shown - 1]->name) : STR_EMPTY);
}

static void get_asset(ApiCall *call)
{
    const AssetsApi *api = call->ctx;
    Str tenant = STR_EMPTY;
    const Asset *asset = assets_get(api->assets, str_from(call->tenant), call->params[0], &tenant);
    if (asset == NULL) {
        answer_unknown(call, call->params[0]);
        return;
    }
    precondition_tag(call, asset->sequence);
    api_answer_json(call, 200, show(call, tenant, asset));
}

// ---- what may be put ----

static bool refuse_body(ApiCall *call, Str body)
{
    if (asset_is_markup(body)) {
        return api_refuse_field(
            call, "body",
            "SVG and other markup is refused: it can hold scripts, and mailboxes do not show it; "
            "export the image as PNG");
    }
    return api_refuse_field(
        call, "body", "%s; its first bytes must be those of " TYPES,
        body.len == 0 ? "the body is empty: send the file as it is" : "not an image");
}

// A Content-Type of another kind, such as curl's own, says nothing.
static bool check_type(ApiCall *call, AssetType type)
{
    Str said = http_header(call->http, "Content-Type");
    bool image = str_starts(said, STR("image/"));
    return !image || str_eq(said, str_from(asset_type_name(type))) ||
           api_refuse_field(
               call, "Content-Type", "the file is %s; leave Content-Type out, or say that",
               asset_type_name(type));
}

// false: answered.
static bool check_put(const Change *change, AssetType *ret_type)
{
    ApiCall *call = change->call;
    Str body = call->http->body;
    Str tenant = str_from(call->tenant);
    const Assets *assets = change->api->assets;
    if (!asset_is_name(change->name)) {
        return api_refuse_field(
            call, "name", "1 to %d of a-z 0-9 '_' '-' and single dots between them: 'logo.png'",
            ASSET_NAME_MAX);
    }
    if (body.len > ASSET_BYTES_MAX) {
        return api_refuse_field(
            call, "body", "%zu bytes, at most %d are allowed: mailboxes load images slowly",
            body.len, ASSET_BYTES_MAX);
    }
    if (assets_own(assets, tenant, change->name) == NULL &&
        assets_count(assets, tenant) >= ASSETS_OF_TENANT_MAX) {
        return api_refuse_field(
            call, "name", "the tenant has %d assets; remove one first", ASSETS_OF_TENANT_MAX);
    }
    *ret_type = asset_type_of(body);
    return (*ret_type != ASSET_NONE || refuse_body(call, body)) && check_type(call, *ret_type);
}

static bool has_storage(ApiCall *call)
{
    const AssetsApi *api = call->ctx;
    if (asset_objects_ready(api->objects)) {
        return true;
    }
    metric_add(call->metrics->refused[REFUSED_UNAVAILABLE], 1);
    http_problem(
        call->http, 503, "no-storage", "There is no object storage", NULL,
        "assets rest in object storage: the operator sets STENTOR_STORAGE_URL of gateway to a "
        "folder or a bucket (deploy/PRODUCTION.md)");
    return false;
}

// ---- putting ----

static void on_entry_stored(void *ctx, const Error *err, Str payload, uint64_t sequence)
{
    Change *change = ctx;
    if (err != NULL && err->kind == ERROR_CONFLICT) {
        precondition_answer_failed(change->call, sequence);
    } else if (err != NULL) {
        api_answer_failure(change->call, err);
    } else {
        answer_put(change, change->stands.len == 0 ? 201 : 200, payload, sequence);
    }
}

// But for who put it and when, which then stay.
static bool is_same(const Change *change)
{
    Arena *arena = change->call->http->arena;
    const Stentor__V1__TemplateAsset *there =
        change->stands.len == 0
            ? NULL
            : (const Stentor__V1__TemplateAsset *)event_unpack(
                  &stentor__v1__template_asset__descriptor, change->stands, arena, NULL);
    if (there == NULL) {
        return false;
    }
    Stentor__V1__TemplateAsset entry = change->entry;
    entry.updated_at_us = there->updated_at_us;
    entry.updated_by = there->updated_by;
    return config_is_same(&entry.base, change->stands, arena);
}

static void write_entry(Change *change, const ProtobufCMessage *message, ConfigWritten done)
{
    config_write(
        &(ConfigWrite){
            .bus = change->api->bus,
            .arena = change->call->http->arena,
            .kind = KIND,
            .tenant = str_from(change->call->tenant),
            .key = change->name,
            .message = message,
            .replaces = change->replaces,
        },
        done, change);
}

static void on_bytes_stored(void *ctx, const Error *err)
{
    Change *change = ctx;
    if (err != NULL) {
        api_answer_failure(change->call, err);
    } else if (is_same(change)) {
        answer_put(change, 200, change->stands, change->replaces);
    } else {
        write_entry(change, &change->entry.base, on_entry_stored);
    }
}

// What stands there, when the caller's precondition holds; false: answered.
static bool take_stands(Change *change, Str payload, uint64_t sequence, const Error *err)
{
    uint64_t there = payload.len == 0 ? 0 : sequence;
    if (err != NULL) {
        api_answer_failure(change->call, err);
        return false;
    }
    if (!precondition_holds(&change->needs, there)) {
        precondition_answer_failed(change->call, there);
        return false;
    }
    change->stands = payload;
    change->replaces = sequence;
    return true;
}

// A name that templates in force may show already changes what they show. false: answered.
static bool may_put(const Change *change)
{
    Str tenant = STR_EMPTY;
    bool shown =
        change->stands.len > 0 ||
        assets_get(change->api->assets, str_from(change->call->tenant), change->name, &tenant) !=
            NULL;
    return !shown || api_need_scope(change->call, SCOPE_TEMPLATES_ACTIVATE);
}

static void on_put_read(void *ctx, Str payload, uint64_t sequence, const Error *err)
{
    Change *change = ctx;
    if (take_stands(change, payload, sequence, err) && may_put(change)) {
        asset_objects_put(&change->storing);
    }
}

static void read_entry(Change *change, ConfigReadDone done)
{
    Arena *arena = change->call->http->arena;
    char *subject = arena_alloc(arena, SUBJECT_SIZE);
    subject_config(subject, KIND, str_from(change->call->tenant), change->name);
    config_read(change->api->bus, subject, arena, done, change);
}

static void fill_entry(Change *change, AssetType type)
{
    ApiCall *call = change->call;
    Stentor__V1__TemplateAsset *entry = &change->entry;
    stentor__v1__template_asset__init(entry);
    entry->tenant = call->tenant;
    entry->name = arena_cstr(call->http->arena, change->name);
    entry->sha256 = (ProtobufCBinaryData){SHA256_LEN, change->storing.sha256};
    entry->content_type = arena_cstr(call->http->arena, str_from(asset_type_name(type)));
    entry->size_bytes = (uint32_t)call->http->body.len;
    entry->updated_at_us = call->http->received_at_us;
    entry->updated_by = arena_cstr(call->http->arena, call->key_id);
}

static void fill_storing(Change *change)
{
    AssetStoring *storing = &change->storing;
    char hex[ASSET_HEX_LEN + 1];
    *storing = (AssetStoring){
        .objects = change->api->objects,
        .bytes = change->call->http->body,
        .on_stored = on_bytes_stored,
        .ctx = change,
    };
    sha256(storing->bytes, storing->sha256);
    hex_encode(storing->sha256, SHA256_LEN, hex);
    asset_object_key(str_from(change->call->tenant), str_from(hex), storing->key);
}

static Change *new_change(ApiCall *call)
{
    Change *change = arena_zalloc(call->http->arena, sizeof *change);
    change->call = call;
    change->api = call->ctx;
    change->name = call->params[0];
    return change;
}

static void put_asset(ApiCall *call)
{
    Change *change = new_change(call);
    AssetType type = ASSET_NONE;
    if (!precondition_read(call, &change->needs) || !check_put(change, &type) ||
        !has_storage(call)) {
        return;
    }
    fill_storing(change);
    fill_entry(change, type);
    read_entry(change, on_put_read);
}

// ---- removing ----

static void on_entry_removed(void *ctx, const Error *err, Str payload, uint64_t sequence)
{
    Change *change = ctx;
    ApiCall *call = change->call;
    if (err != NULL && err->kind == ERROR_CONFLICT) {
        precondition_answer_failed(call, sequence);
    } else if (err != NULL) {
        api_answer_failure(call, err);
    } else {
        (void)assets_put(
            change->api->assets, str_from(call->tenant), change->name, payload, sequence, NULL);
        http_respond(call->http, 204, "application/json", STR_EMPTY);
    }
}

static void on_delete_read(void *ctx, Str payload, uint64_t sequence, const Error *err)
{
    Change *change = ctx;
    if (!take_stands(change, payload, sequence, err)) {
        return;
    }
    if (payload.len == 0) {
        answer_unknown(change->call, change->name);
        return;
    }
    write_entry(change, NULL, on_entry_removed);
}

static void delete_asset(ApiCall *call)
{
    Change *change = new_change(call);
    if (!asset_is_name(change->name)) {
        answer_unknown(call, change->name);
    } else if (precondition_read(call, &change->needs)) {
        read_entry(change, on_delete_read);
    }
}

static const ApiRoute ROUTES[] = {
    {"GET", "/v1/template-assets", SCOPE_TEMPLATES_READ, get_assets, "limit cursor platform",
     false},
    {"GET", "/v1/template-assets/{}", SCOPE_TEMPLATES_READ, get_asset, NULL, false},
    {"PUT", "/v1/template-assets/{}", SCOPE_TEMPLATES_WRITE, put_asset, NULL, true},
    {"DELETE", "/v1/template-assets/{}", SCOPE_TEMPLATES_ACTIVATE, delete_asset, NULL, true},
};

void assets_api_add(Api *api, AssetsApi *assets)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], assets);
}
