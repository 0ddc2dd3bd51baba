// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/recipients/recipient_json.h"

#include <string.h>

#include "common/base/id.h"
#include "common/model/channel_address.h"

static bool take_line(ApiBody *body, const char *name, size_t max, Str *ret)
{
    return api_read_text(body, name, max, ret) &&
           (!str_has_control(*ret) ||
            api_body_fail(body, name, "has a line break or another control character"));
}

static bool take_category(ApiBody *body, Category *ret)
{
    Str name = STR_EMPTY;
    if (!api_read_text(body, "category", 32, &name)) {
        return false;
    }
    if (name.len == 0 || str_eq(name, STR("any"))) {
        *ret = CATEGORY_NONE;
        return true;
    }
    return category_from_name(name, ret) ||
           api_body_fail(
               body, "category",
               "not 'any', transactional, operational, security, reminder, marketing, system, "
               "academic, billing, social or compliance");
}

static bool take_channel(ApiBody *body, Channel *ret)
{
    Str name = STR_EMPTY;
    if (!api_read_text(body, "channel", 32, &name)) {
        return false;
    }
    if (name.len == 0 || str_eq(name, STR("any"))) {
        *ret = CHANNEL_NONE;
        return true;
    }
    return channel_from_name(name, ret) ||
           api_body_fail(
               body, "channel", "not 'any', email, sms, whatsapp, push, inapp, voice or webhook");
}

// ---- the entries of an array ----

// One entry as a body of its own; its problem is handed out by api_body_inside_end.
static bool begin_entry(ApiBody *outer, const char *name, size_t index, json_t *value, ApiBody *ret)
{
    if (!json_is_object(value)) {
        return api_body_fail(
            outer, arena_printf(outer->arena, "%s[%zu]", name, index), "must be an object");
    }
    *ret = api_body_inside(
        outer, value, arena_printf(outer->arena, "%s%s[%zu].", outer->at, name, index));
    return true;
}

// ---- addresses ----

// channel_known: else the text cannot be judged.
static bool take_address_text(ApiBody *body, bool channel_known, PersonAddress *ret)
{
    char reason[ADDRESS_REASON_SIZE];
    Str text = STR_EMPTY;
    if (!take_line(body, "address", PEOPLE_ADDRESS_MAX, &text)) {
        return false;
    }
    if (text.len == 0) {
        return api_body_fail(body, "address", "required");
    }
    return !channel_known ||
           people_address_check(ret->channel, text, body->arena, &ret->address, reason) ||
           api_body_fail(body, "address", "%s", reason);
}

static bool take_address_status(ApiBody *body, PersonAddress *ret)
{
    Str status = STR_EMPTY;
    ret->status = ADDRESS_ACTIVE;
    if (!api_read_text(body, "status", 32, &status)) {
        return false;
    }
    return status.len == 0 || address_status_from_name(status, &ret->status) ||
           api_body_fail(body, "status", "not active, suppressed or revoked");
}

static bool read_address(ApiBody *body, PersonAddress *ret)
{
    Str hash = STR_EMPTY; // an answer has it; what is copied from there is good
    bool known = take_channel(body, &ret->channel);
    (void)api_read_text(body, "address_hash", 64, &hash);
    if (known && ret->channel == CHANNEL_NONE) {
        known = api_body_fail(
            body, "channel", "required: email, sms, whatsapp, push, inapp, voice or webhook");
    }
    (void)take_address_text(body, known, ret);
    (void)take_address_status(body, ret);
    (void)api_read_bool(body, "verified", &ret->verified);
    (void)api_read_bool(body, "primary", &ret->primary);
    return take_line(body, "label", PERSON_TEXT_MAX, &ret->label);
}

static bool check_twice(ApiBody *body, const PersonRecord *record, size_t at)
{
    const PersonAddress *now = &record->addresses[at];
    for (size_t i = 0; i < at; i++) {
        const PersonAddress *before = &record->addresses[i];
        if (before->channel != now->channel) {
            continue;
        }
        bool same = now->channel == CHANNEL_EMAIL ? str_eq_nocase(before->address, now->address)
                                                  : str_eq(before->address, now->address);
        if (same || (before->primary && now->primary)) {
            return api_body_fail(
                body, arena_printf(body->arena, "addresses[%zu]", at),
                same ? "the same address as addresses[%zu]"
                     : "addresses[%zu] is the primary one of its channel already",
                i);
        }
    }
    return true;
}

static bool read_addresses(ApiBody *body, PersonRecord *ret)
{
    json_t *list = NULL;
    if (!api_read_array(body, "addresses", PERSON_ADDRESSES_MAX, &list) || list == NULL) {
        return api_body_good(body);
    }
    ret->addresses = arena_array(body->arena, json_array_size(list) + 1, sizeof *ret->addresses);
    for (size_t i = 0; i < json_array_size(list); i++) {
        ApiBody entry;
        if (!begin_entry(body, "addresses", i, json_array_get(list, i), &entry)) {
            continue;
        }
        (void)read_address(&entry, &ret->addresses[i]);
        if (api_body_inside_end(body, &entry)) { // all before are good too
            (void)check_twice(body, ret, i);
        }
        ret->address_count = i + 1;
    }
    return api_body_good(body);
}

// ---- the record ----

static bool read_identity(ApiBody *body, PersonRecord *ret)
{
    Str type = STR_EMPTY;
    bool named = api_read_text(body, "identity_type", 32, &type);
    (void)take_line(body, "identity_id", PERSON_TEXT_MAX, &ret->identity_id);
    if (!named) {
        return false;
    }
    if (type.len > 0 && !identity_from_name(type, &ret->identity)) {
        return api_body_fail(body, "identity_type", "not guest, user, vendor or anonymous");
    }
    if (ret->identity_id.len > 0 && ret->identity == IDENTITY_NONE) {
        return api_body_fail(body, "identity_type", "required together with identity_id");
    }
    return true;
}

static bool read_language(ApiBody *body, PersonRecord *ret)
{
    (void)api_read_text(body, "locale", 64, &ret->locale);
    (void)api_read_text(body, "time_zone", 2 * API_ZONE_MAX, &ret->time_zone);
    if (ret->locale.len > 0 && !api_is_locale(ret->locale)) {
        (void)api_body_fail(body, "locale", "not a language tag such as 'en-US'");
    }
    return ret->time_zone.len == 0 || api_is_zone(ret->time_zone) ||
           api_body_fail(body, "time_zone", "not a time zone such as 'Europe/Berlin' (IANA)");
}

static bool read_guardian(ApiBody *body, PersonRecord *ret)
{
    Str routing = STR_EMPTY;
    (void)api_read_bool(body, "minor", &ret->minor);
    (void)api_read_text(body, "guardian_id", 64, &ret->guardian_id);
    (void)api_read_text(body, "guardian_routing", 32, &routing);
    if (ret->guardian_id.len > 0 && !id_parse(ret->guardian_id, "rcp_", NULL)) {
        (void)api_body_fail(body, "guardian_id", "not a recipient's id ('rcp_' and a ULID)");
    }
    return routing.len == 0 || guardian_routing_from_name(routing, &ret->guardian_routing) ||
           api_body_fail(body, "guardian_routing", "not none, copy or redirect");
}

// ---- labels ----

static bool add_label(ApiBody *body, size_t index, const json_t *item, PersonRecord *ret)
{
    const char *at = arena_printf(body->arena, "labels[%zu]", index);
    Str text = str_of(json_string_value(item), json_string_length(item));
    if (!json_is_string(item) || !id_is_key(text)) {
        return api_body_fail(
            body, at, "not a label such as 'admin': a-z, 0-9, '_', '-', at most 64");
    }
    for (size_t i = 0; i < ret->label_count; i++) {
        if (str_eq(ret->labels[i], text)) {
            return api_body_fail(body, at, "the label '%.*s' stands twice", STR_ARG(text));
        }
    }
    ret->labels[ret->label_count++] = arena_str(body->arena, text);
    return true;
}

static bool read_labels(ApiBody *body, PersonRecord *ret)
{
    json_t *list = NULL;
    if (!api_read_array(body, "labels", PERSON_LABELS_MAX, &list) || list == NULL) {
        return api_body_good(body);
    }
    ret->labels = arena_array(body->arena, json_array_size(list) + 1, sizeof *ret->labels);
    for (size_t i = 0; i < json_array_size(list); i++) {
        (void)add_label(body, i, json_array_get(list, i), ret);
    }
    return api_body_good(body);
}

bool person_record_read(ApiBody *body, PersonRecord *ret)
{
    *ret = (PersonRecord){
        .identity_id = STR_EMPTY,
        .name = STR_EMPTY,
        .locale = STR_EMPTY,
        .time_zone = STR_EMPTY,
        .guardian_id = STR_EMPTY,
    };
    (void)read_identity(body, ret);
    char reason[ADDRESS_REASON_SIZE];
    if (api_read_text(body, "name", PERSON_TEXT_MAX, &ret->name) &&
        !address_name_check(ret->name, reason)) {
        (void)api_body_fail(body, "name", "%s", reason);
    }
    (void)read_language(body, ret);
    (void)api_read_quiet_hours(
        body, "quiet_hours", &ret->quiet, &ret->quiet_start, &ret->quiet_end);
    (void)read_addresses(body, ret);
    (void)read_guardian(body, ret);
    (void)read_labels(body, ret);
    return api_body_good(body);
}

// ---- preferences ----

static bool take_frequency(ApiBody *body, PersonPreference *ret)
{
    Str name = STR_EMPTY;
    ret->frequency = FREQUENCY_IMMEDIATE;
    if (!api_read_text(body, "frequency", 32, &name)) {
        return false;
    }
    return name.len == 0 || frequency_from_name(name, &ret->frequency) ||
           api_body_fail(body, "frequency", "not immediate, hourly, daily or weekly");
}

static bool read_preference(ApiBody *body, PersonPreference *ret)
{
    const uint32_t unsaid = UINT32_MAX;
    uint32_t minute = unsaid;
    int64_t weekday = 0;
    (void)take_category(body, &ret->category);
    (void)take_channel(body, &ret->channel);
    (void)api_read_bool(body, "off", &ret->off);
    bool known = take_frequency(body, ret);
    (void)api_read_minute(body, "at", &minute);
    (void)api_read_int(body, "weekday", 1, 7, &weekday);
    if (!known) {
        return false; // when it comes cannot be judged
    }
    bool timed = ret->frequency == FREQUENCY_DAILY || ret->frequency == FREQUENCY_WEEKLY;
    if (minute != unsaid && !timed) {
        (void)api_body_fail(body, "at", "only with frequency daily or weekly");
    }
    if (weekday != 0 && ret->frequency != FREQUENCY_WEEKLY) {
        (void)api_body_fail(body, "weekday", "only with frequency weekly");
    }
    ret->at_minute = minute != unsaid ? minute : timed ? PERSON_AT_DEFAULT : 0;
    ret->on_weekday = (uint32_t)weekday;
    return true;
}

bool person_preferences_read(
    ApiBody *body, PersonPreference **ret, size_t *ret_count, bool *ret_given)
{
    json_t *list = NULL;
    *ret_given = false;
    *ret_count = 0;
    if (!api_read_array(body, "preferences", PERSON_PREFERENCES_MAX, &list) || list == NULL) {
        return api_body_good(body);
    }
    *ret_given = true;
    PersonPreference *items = arena_array(body->arena, json_array_size(list) + 1, sizeof *items);
    for (size_t i = 0; i < json_array_size(list); i++) {
        ApiBody entry;
        if (!begin_entry(body, "preferences", i, json_array_get(list, i), &entry)) {
            continue;
        }
        (void)read_preference(&entry, &items[i]);
        for (size_t n = 0; api_body_good(&entry) && n < i; n++) { // else they may be no pairs
            if (items[n].category == items[i].category && items[n].channel == items[i].channel) {
                (void)api_body_fail(
                    &entry, "category", "the same category and channel as preferences[%zu]", n);
            }
        }
        (void)api_body_inside_end(body, &entry);
    }
    *ret = items;
    *ret_count = json_array_size(list);
    return api_body_good(body);
}

// ---- consents ----

static bool read_consent(ApiBody *body, int64_t now_us, PersonConsent *ret)
{
    if (!json_is_boolean(json_object_get(body->root, "granted"))) { // null is no answer either
        (void)api_body_fail(body, "granted", "required: true or false");
    }
    ret->source = STR_EMPTY;
    (void)take_category(body, &ret->category);
    (void)take_channel(body, &ret->channel);
    (void)api_read_bool(body, "granted", &ret->granted);
    (void)take_line(body, "source", PERSON_TEXT_MAX, &ret->source);
    (void)api_read_time(body, "given_at", &ret->given_at_us);
    const int64_t slack_us = INT64_C(3600) * 1000000; // clocks differ
    return ret->given_at_us <= now_us + slack_us ||
           api_body_fail(body, "given_at", "must not be in the future");
}

bool person_consents_read(
    ApiBody *body, int64_t now_us, PersonConsent **ret, size_t *ret_count, bool *ret_given)
{
    json_t *list = NULL;
    *ret_given = false;
    *ret_count = 0;
    if (!api_read_array(body, "consents", PERSON_PREFERENCES_MAX, &list) || list == NULL) {
        return api_body_good(body);
    }
    *ret_given = true;
    PersonConsent *items = arena_array(body->arena, json_array_size(list) + 1, sizeof *items);
    for (size_t i = 0; i < json_array_size(list); i++) {
        ApiBody entry;
        if (!begin_entry(body, "consents", i, json_array_get(list, i), &entry)) {
            continue;
        }
        (void)read_consent(&entry, now_us, &items[i]);
        (void)api_body_inside_end(body, &entry);
    }
    *ret = items;
    *ret_count = json_array_size(list);
    return api_body_good(body);
}

// ---- a line of an import ----

static bool read_line(ApiBody *body, int64_t now_us, PersonLine *ret)
{
    bool given = false;
    if (api_read_text(body, "id", 64, &ret->id) && ret->id.len > 0 &&
        !id_parse(ret->id, "rcp_", NULL)) {
        (void)api_body_fail(body, "id", "not a recipient's id ('rcp_' and a ULID)");
    }
    (void)person_record_read(body, &ret->record);
    (void)person_preferences_read(body, &ret->preferences, &ret->preference_count, &given);
    (void)person_consents_read(body, now_us, &ret->consents, &ret->consent_count, &given);
    if (!api_body_end(body)) {
        return false;
    }
    bool known = ret->id.len > 0 || ret->record.identity_id.len > 0;
    return known || ret->record.address_count > 0 ||
           api_body_fail(body, "id", "an id, an identity or an address is needed");
}

bool person_line_read(Str text, int64_t now_us, Arena *arena, PersonLine *ret, Problem *problem)
{
    ApiBody body = {.arena = arena, .at = ""};
    *ret = (PersonLine){.id = STR_EMPTY};
    if (text.len > PERSON_LINE_MAX) {
        (void)api_body_fail(&body, "", "%zu bytes; at most %d", text.len, (int)PERSON_LINE_MAX);
        *problem = body.problem;
        return false;
    }
    bool ok = api_body_parse(&body, text, arena) && read_line(&body, now_us, ret);
    *problem = body.problem;
    api_body_free(&body);
    return ok;
}

bool person_body_parse(ApiBody *body, const char *name, Str text, Arena *arena)
{
    json_error_t error;
    json_t *root = str_starts(str_trim(text), STR("["))
                       ? api_json_load(text, JSON_REJECT_DUPLICATES, &error)
                       : NULL;
    if (root == NULL) {
        return api_body_parse(body, text, arena); // its error names line and column
    }
    *body = (ApiBody){.arena = arena, .at = "", .root = json_pack("{s:o}", name, root)};
    return true;
}
