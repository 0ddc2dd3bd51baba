// SPDX-License-Identifier: Apache-2.0
// A put in the order in which it happens: the checks, what CONFIG has, the bytes into object
// storage, the entry. Killed between the last two: bytes that no entry names, harmless and kept; a
// repeat of the put meets them.
#include "services/gateway/assets/assets_api.h"

#include <string.h>

#include "common/api/config_change.h"
#include "common/api/config_write.h"
#include "common/api/page.h"
#include "common/base/clock.h"
#include "common/codec/event.h"

#define KIND "asset"
#define TYPES "PNG, JPEG, GIF or WebP"

// A change on its way to CONFIG; lives in the request's arena.
typedef struct Change {
    ConfigChange base; // first; its key is the asset's name
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

static bool take_stored(ConfigChange *base, Str payload, uint64_t sequence)
{
    const AssetsApi *api = base->call->ctx;
    Error err = {0};
    bool good =
        assets_put(api->assets, str_from(base->call->tenant), base->key, payload, sequence, &err);
    if (!good) {
        api_answer_failure(base->call, &err);
    }
    return good;
}

static void answer_put(ConfigChange *base, Str payload)
{
    (void)payload;
    const AssetsApi *api = base->call->ctx;
    Str tenant = str_from(base->call->tenant);
    api_answer_json(
        base->call, base->stands.len == 0 ? 201 : 200,
        show(base->call, tenant, assets_own(api->assets, tenant, base->key)));
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
static bool check_put(ApiCall *call, AssetType *ret_type)
{
    const AssetsApi *api = call->ctx;
    Str name = call->params[0];
    Str body = call->http->body;
    Str tenant = str_from(call->tenant);
    const Assets *assets = api->assets;
    if (!asset_is_name(name)) {
        return api_refuse_field(
            call, "name", "1 to %d of a-z 0-9 '_' '-' and single dots between them: 'logo.png'",
            ASSET_NAME_MAX);
    }
    if (body.len > ASSET_BYTES_MAX) {
        return api_refuse_field(
            call, "body", "%zu bytes, at most %d are allowed: mailboxes load images slowly",
            body.len, ASSET_BYTES_MAX);
    }
    if (assets_own(assets, tenant, name) == NULL &&
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

// But for who put it and when, which stay when nothing else differs.
static void keep_who(Change *change)
{
    Arena *arena = change->base.call->http->arena;
    Str stands = change->base.stands;
    const Stentor__V1__TemplateAsset *there =
        stands.len == 0 ? NULL
                        : (const Stentor__V1__TemplateAsset *)event_unpack(
                              &stentor__v1__template_asset__descriptor, stands, arena, NULL);
    if (there != NULL) {
        Stentor__V1__TemplateAsset same = change->entry;
        same.updated_at_us = there->updated_at_us;
        same.updated_by = there->updated_by;
        change->entry = config_is_same(&same.base, stands, arena) ? same : change->entry;
    }
}

static void on_bytes_stored(void *ctx, const Error *err)
{
    Change *change = ctx;
    if (err != NULL) {
        api_answer_failure(change->base.call, err);
        return;
    }
    keep_who(change);
    config_change_write(&change->base, &change->entry.base);
}

// A name that templates in force may show already changes what they show. false: answered.
static bool may_put(const ConfigChange *base)
{
    const AssetsApi *api = base->call->ctx;
    Str tenant = STR_EMPTY;
    bool shown = base->stands.len > 0 ||
                 assets_get(api->assets, str_from(base->call->tenant), base->key, &tenant) != NULL;
    return !shown || api_need_scope(base->call, SCOPE_TEMPLATES_ACTIVATE);
}

// The bytes are stored before the entry that names them (on_bytes_stored).
static bool make_put(ConfigChange *base, Str there, const ProtobufCMessage **ret)
{
    (void)there, (void)ret;
    if (may_put(base)) {
        asset_objects_put(&((Change *)base)->storing);
    }
    return false;
}

static void fill_entry(Change *change, AssetType type)
{
    ApiCall *call = change->base.call;
    Stentor__V1__TemplateAsset *entry = &change->entry;
    stentor__v1__template_asset__init(entry);
    entry->tenant = call->tenant;
    entry->name = arena_cstr(call->http->arena, change->base.key);
    entry->sha256 = (ProtobufCBinaryData){SHA256_LEN, change->storing.sha256};
    entry->content_type = arena_cstr(call->http->arena, str_from(asset_type_name(type)));
    entry->size_bytes = (uint32_t)call->http->body.len;
    entry->updated_at_us = call->http->received_at_us;
    entry->updated_by = arena_cstr(call->http->arena, call->key_id);
}

static void fill_storing(Change *change)
{
    const AssetsApi *api = change->base.call->ctx;
    AssetStoring *storing = &change->storing;
    char hex[ASSET_HEX_LEN + 1];
    *storing = (AssetStoring){
        .objects = api->objects,
        .bytes = change->base.call->http->body,
        .on_stored = on_bytes_stored,
        .ctx = change,
    };
    sha256(storing->bytes, storing->sha256);
    hex_encode(storing->sha256, SHA256_LEN, hex);
    asset_object_key(str_from(change->base.call->tenant), str_from(hex), storing->key);
}

static Change *new_change(ApiCall *call)
{
    const AssetsApi *api = call->ctx;
    Change *change =
        (Change *)config_change_new(call, sizeof *change, api->bus, KIND, call->params[0]);
    change->base.take = take_stored;
    return change;
}

static void put_asset(ApiCall *call)
{
    Change *change = new_change(call);
    AssetType type = ASSET_NONE;
    if (!check_put(call, &type) || !has_storage(call)) {
        return;
    }
    fill_storing(change);
    fill_entry(change, type);
    change->base.make = make_put;
    change->base.answer = answer_put;
    config_change_run(&change->base);
}

// ---- removing ----

static void answer_missing(ApiCall *call)
{
    answer_unknown(call, call->params[0]);
}

static void delete_asset(ApiCall *call)
{
    Change *change = new_change(call);
    if (asset_is_name(call->params[0])) {
        config_change_remove(&change->base, answer_missing);
    } else {
        answer_missing(call);
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
