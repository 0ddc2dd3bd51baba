// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "common/base/id.h"
#include "common/bus/topology/topology.h"

enum { TOKEN_MAX = 64, EVENT_TYPE_MAX = 96 };

// Tokens joined by dots. Every token here is at most TOKEN_MAX, so two of them and the fixed tokens
// fit SUBJECT_SIZE.
static void join(char out[SUBJECT_SIZE], const Str *tokens, size_t count)
{
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        size_t room = SUBJECT_SIZE - 2 - at;
        size_t len = tokens[i].len < room ? tokens[i].len : room;
        memcpy(out + at, tokens[i].ptr, len);
        at += len;
        out[at++] = '.';
    }
    out[at - 1] = '\0';
}

static Str tenant_token(Str tenant)
{
    return id_is_tenant(tenant) ? tenant : STR("unknown");
}

// A word of a closed set; anything else must not become part of a subject.
static Str word(const char *text)
{
    Str s = str_from(text);
    return id_is_key(s) ? s : STR("unknown");
}

void subject_request(char out[SUBJECT_SIZE], Priority lane, Str tenant)
{
    join(
        out, (Str[]){STR("ntf"), STR("request"), word(priority_name(lane)), tenant_token(tenant)},
        4);
}

void subject_rendered(char out[SUBJECT_SIZE], Priority lane, Str tenant)
{
    join(
        out, (Str[]){STR("ntf"), STR("rendered"), word(priority_name(lane)), tenant_token(tenant)},
        4);
}

void subject_status(char out[SUBJECT_SIZE], Str tenant, Channel channel, Status status)
{
    join(
        out,
        (Str[]){
            STR("ntf"), STR("status"), tenant_token(tenant), word(channel_name(channel)),
            word(status_name(status))},
        5);
}

void subject_reply(char out[SUBJECT_SIZE], Str tenant, Channel channel, const char *kind)
{
    join(
        out,
        (Str[]){
            STR("ntf"), STR("reply"), tenant_token(tenant), word(channel_name(channel)),
            word(kind)},
        5);
}

void subject_deferred(char out[SUBJECT_SIZE], const char *reason, Str tenant)
{
    join(out, (Str[]){STR("ntf"), STR("deferred"), word(reason), tenant_token(tenant)}, 4);
}

void subject_inbound(char out[SUBJECT_SIZE], const char *vendor)
{
    join(out, (Str[]){STR("ntf"), STR("inbound"), word(vendor)}, 3);
}

void subject_settle(char out[SUBJECT_SIZE], Str tenant)
{
    join(out, (Str[]){STR("ntf"), STR("settle"), tenant_token(tenant)}, 3);
}

void subject_hook(char out[SUBJECT_SIZE], Str tenant)
{
    join(out, (Str[]){STR("ntf"), STR("hook"), tenant_token(tenant)}, 3);
}

void subject_people(char out[SUBJECT_SIZE], Str tenant)
{
    join(out, (Str[]){STR("ppl"), tenant_token(tenant)}, 2);
}

void subject_feed(char out[SUBJECT_SIZE], Str tenant)
{
    join(out, (Str[]){STR("feed"), tenant_token(tenant)}, 2);
}

// A dot parts two tokens only between two other characters; an empty token would make the subject
// invalid.
static bool parts_tokens(Str key, size_t at)
{
    return key.ptr[at] == '.' && at > 0 && at + 1 < key.len && key.ptr[at - 1] != '.';
}

bool event_type_fits(Str type)
{
    if (type.len == 0 || type.len > EVENT_TYPE_MAX) {
        return false;
    }
    for (size_t i = 0; i < type.len; i++) {
        char c = type.ptr[i];
        bool letter = ascii_is_alnum(c) || c == '_' || c == '-';
        if (!letter && (c != '.' || !parts_tokens(type, i))) {
            return false;
        }
    }
    return true;
}

void subject_event(char out[SUBJECT_SIZE], Str tenant, Str type)
{
    Str tokens = event_type_fits(type) ? type : STR("unknown");
    join(out, (Str[]){STR("evt"), tenant_token(tenant), tokens}, 3);
}

void subject_dead(char out[SUBJECT_SIZE], const char *stage, Str tenant)
{
    join(out, (Str[]){STR("ntf"), STR("dead"), word(stage), tenant_token(tenant)}, 4);
}

void subject_audit(char out[SUBJECT_SIZE], Str tenant, Str kind)
{
    join(
        out, (Str[]){STR("aud"), tenant_token(tenant), id_is_key(kind) ? kind : STR("unknown")}, 3);
}

void subject_process(char out[SUBJECT_SIZE], const char *service, const char *instance)
{
    Str name = str_from(service), prefix = STR("stentor-");
    name = str_starts(name, prefix) ? str_slice(name, prefix.len, name.len) : name;
    Str token = str_from(instance);
    join(
        out,
        (Str[]){
            STR("live"), STR("process"), id_is_key(name) ? name : STR("unknown"),
            id_is_key(token) ? token : STR("unknown")},
        4);
}

void subject_in_hand(char out[SUBJECT_SIZE], const char *service, const char *process)
{
    Str name = str_from(service), prefix = STR("stentor-");
    name = str_starts(name, prefix) ? str_slice(name, prefix.len, name.len) : name;
    bool all = str_eq(str_from(process), STR("*"));
    join(
        out,
        (Str[]){
            STR("ntf"), STR("inhand"), id_is_key(name) ? name : STR("unknown"),
            all ? STR("*") : word(process)},
        4);
}

void subject_config(char out[SUBJECT_SIZE], const char *kind, Str tenant, Str key)
{
    char clean[CONFIG_KEY_MAX];
    key = str_slice(key, 0, sizeof clean);
    for (size_t i = 0; i < key.len; i++) {
        char c = key.ptr[i];
        bool bad = c <= ' ' || c == 0x7f || strchr(".*>", c) != NULL;
        clean[i] = bad && !parts_tokens(key, i) ? '_' : c;
    }
    Str tokens = key.len > 0 ? str_of(clean, key.len) : STR("_");
    join(out, (Str[]){STR("cfg"), word(kind), tenant_token(tenant), tokens}, 4);
}

Str subject_token(Str subject, int wanted)
{
    Str token = STR_EMPTY;
    for (int i = 0; i <= wanted; i++) {
        if (!str_split(&subject, '.', &token)) {
            return STR_EMPTY;
        }
    }
    return token;
}

Str subject_last(Str subject)
{
    Str token = STR_EMPTY;
    while (str_split(&subject, '.', &token)) {
        continue;
    }
    return token;
}
