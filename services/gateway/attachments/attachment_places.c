// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/attachments/attachment_places.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/id.h"

enum { SECRET_MAX = 4096 };

typedef struct Place {
    const char *name;
    const json_t *tenants;
    Storage *storage; // NULL: closed
} Place;

struct AttachmentPlaces {
    json_t *file; // what the places point into
    Place places[ATTACHMENT_PLACES_MAX];
    size_t count;
    size_t open;
    void (*on_closed)(void *ctx);
    void *ctx;
};

static const char *text_of(const json_t *entry, const char *name)
{
    const char *text = json_string_value(json_object_get(entry, name));
    return text != NULL ? text : "";
}

static bool check_entry(const json_t *entry, size_t at, Error *err)
{
    static const char *const known[] = {"name",   "tenants",     "url",
                                        "key_id", "secret_file", "vendor"};
    const char *name;
    json_t *value;
    size_t i;
    json_object_foreach((json_t *)(uintptr_t)entry, name, value)
    {
        bool found = false;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
            found = found || strcmp(name, known[k]) == 0;
        }
        if (!found || (strcmp(name, "tenants") != 0 && !json_is_string(value))) {
            return error_set(
                err, ERROR_CONFIG, "place %zu: '%s' is no field, or no text", at, name);
        }
    }
    const json_t *tenants = json_object_get(entry, "tenants");
    if (!id_is_tenant(str_from(text_of(entry, "name"))) || text_of(entry, "url")[0] == '\0' ||
        json_array_size(tenants) == 0) {
        return error_set(
            err, ERROR_CONFIG,
            "place %zu: 'name' ([a-z0-9_-]), 'url' and 'tenants' (a list) are required", at);
    }
    json_array_foreach((json_t *)(uintptr_t)tenants, i, value)
    {
        if (!json_is_string(value) || !id_is_tenant(str_from(json_string_value(value)))) {
            return error_set(err, ERROR_CONFIG, "place %zu: tenants[%zu] is no tenant", at, i);
        }
    }
    return true;
}

static bool read_secret(const char *path, char out[SECRET_MAX], Error *err)
{
    out[0] = '\0';
    if (path[0] == '\0') {
        return true;
    }
    FILE *file = fopen(path, "re");
    size_t len = file != NULL ? fread(out, 1, SECRET_MAX - 1, file) : 0;
    if (file != NULL) {
        (void)fclose(file);
    }
    while (len > 0 && (out[len - 1] == '\n' || out[len - 1] == '\r')) {
        len--;
    }
    out[len] = '\0';
    return len > 0 || error_set(err, ERROR_CONFIG, "'%s' cannot be read, or is empty", path);
}

static bool open_place(
    AttachmentPlaces *places, uv_loop_t *loop, const json_t *entry, size_t at, Error *err)
{
    char secret[SECRET_MAX];
    if (!check_entry(entry, at, err)) {
        return false;
    }
    Place *place = &places->places[places->count];
    *place = (Place){.name = text_of(entry, "name"), .tenants = json_object_get(entry, "tenants")};
    for (size_t i = 0; i < places->count; i++) {
        if (strcmp(places->places[i].name, place->name) == 0) {
            return error_set(err, ERROR_CONFIG, "place '%s' stands there twice", place->name);
        }
    }
    StorageOptions options = {
        .url = text_of(entry, "url"),
        .key_id = text_of(entry, "key_id"),
        .secret = secret,
        .vendor = text_of(entry, "vendor"),
        .foreign = true,
    };
    place->storage = read_secret(text_of(entry, "secret_file"), secret, err)
                         ? storage_new(loop, &options, err)
                         : NULL;
    if (place->storage == NULL) {
        return error_wrap(err, "place '%s'", place->name);
    }
    places->count++;
    places->open++;
    return true;
}

static void on_failed_closed(void *ctx)
{
    attachment_places_free(ctx);
}

AttachmentPlaces *attachment_places_new(uv_loop_t *loop, const char *file, Error *err)
{
    AttachmentPlaces *places = xcalloc(1, sizeof *places);
    if (file[0] == '\0') {
        return places;
    }
    json_error_t wrong;
    places->file = json_load_file(file, JSON_REJECT_DUPLICATES, &wrong);
    bool ok = json_is_array(places->file) && json_array_size(places->file) <= ATTACHMENT_PLACES_MAX;
    if (!ok) {
        (void)error_set(
            err, ERROR_CONFIG, "'%s' is no JSON list of at most %d places: %s, line %d", file,
            (int)ATTACHMENT_PLACES_MAX, wrong.text, wrong.line);
    }
    for (size_t i = 0; ok && i < json_array_size(places->file); i++) {
        ok = open_place(places, loop, json_array_get(places->file, i), i, err) ||
             error_wrap(err, "%s", file);
    }
    if (!ok) {
        (void)error_wrap(err, "STENTOR_GATEWAY_ATTACHMENT_PLACES");
        attachment_places_close(places, on_failed_closed, places);
        return NULL;
    }
    return places;
}

Storage *attachment_places_find(const AttachmentPlaces *places, Str name, Str tenant)
{
    for (size_t i = 0; i < places->count; i++) {
        const Place *place = &places->places[i];
        json_t *one;
        size_t at;
        json_array_foreach((json_t *)(uintptr_t)place->tenants, at, one)
        {
            if (str_eq(name, str_from(place->name)) &&
                str_eq(tenant, str_from(json_string_value(one)))) {
                return place->storage;
            }
        }
    }
    return NULL;
}

static void on_storage_closed(void *ctx)
{
    AttachmentPlaces *places = ctx;
    if (--places->open == 0) {
        places->on_closed(places->ctx);
    }
}

void attachment_places_close(AttachmentPlaces *places, void (*on_closed)(void *ctx), void *ctx)
{
    places->on_closed = on_closed;
    places->ctx = ctx;
    if (places->open == 0) {
        on_closed(ctx);
        return;
    }
    size_t count = places->count;
    for (size_t i = 0; i < count; i++) {
        Storage *storage = places->places[i].storage;
        places->places[i].storage = NULL;
        storage_free(storage, on_storage_closed, places);
    }
}

void attachment_places_free(AttachmentPlaces *places)
{
    if (places != NULL) {
        json_decref(places->file);
        free(places);
    }
}
