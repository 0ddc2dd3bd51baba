// SPDX-License-Identifier: Apache-2.0
// Killed between the entry and the handler: the entry stands for what was not done, and says so by
// nothing; the caller got no answer and repeats, which is another entry.
#include "common/api/callers/api_audit.h"

#include "common/api/api.h"
#include "common/base/crash.h"
#include "common/codec/hash.h"

enum { DIGEST_SHOWN = 16, TARGET_MAX = 512, TRACE_LEN = 32 }; // bytes of a digest, of a target

#define PURPOSE "stentor api audit"

void api_audit_init(ApiAudit *audit, AuditLog *log, const MasterKey *master, const char *program)
{
    audit->log = log;
    audit->program = program;
    master_key_derive(master, 0, PURPOSE, audit->digest_key);
}

// ---- what is noted ----

static bool only_reads(Scope scope)
{
    Str name = str_from(scope_name(scope));
    Str end = STR(":read");
    return name.len > end.len && str_eq(str_slice(name, name.len - end.len, name.len), end);
}

// Its handlers know what the path does not say, the ground and the sequences, and note it before
// they do it.
static bool notes_itself(Scope scope)
{
    return scope == SCOPE_CONTENT_REVEAL || scope == SCOPE_DEAD_RESEND;
}

static bool is_reveal(const ApiAct *act)
{
    return act->reveals || act->scope == SCOPE_RECIPIENTS_REVEAL ||
           act->scope == SCOPE_SUPPRESSIONS_EXPORT;
}

static bool is_data(Scope scope)
{
    return scope == SCOPE_NOTIFICATIONS_SEND || scope == SCOPE_BATCHES_WRITE ||
           scope == SCOPE_RECIPIENTS_WRITE || scope == SCOPE_INBOX_TOKEN;
}

bool api_audit_wants(const ApiAct *act, AuditKind *ret_kind)
{
    bool reads = str_eq(act->method, STR("GET")) || str_eq(act->method, STR("HEAD"));
    if (notes_itself(act->scope)) {
        return false;
    }
    if (is_reveal(act)) {
        *ret_kind = AUDIT_READ;
        return true;
    }
    if (reads || only_reads(act->scope)) {
        return false;
    }
    *ret_kind = AUDIT_WRITE;
    return act->person || !is_data(act->scope) || str_eq(act->method, STR("DELETE"));
}

// ---- the entry ----

static const char *keyed(const ApiAudit *audit, const char *what, Str data, Arena *arena)
{
    uint8_t inner[SHA256_LEN], digest[SHA256_LEN];
    char *text = arena_alloc(arena, 2 * DIGEST_SHOWN + 1);
    hmac_sha256(str_of(audit->digest_key, sizeof audit->digest_key), data, inner);
    hmac_sha256(str_of(inner, sizeof inner), str_from(what), digest);
    hex_encode(digest, DIGEST_SHOWN, text);
    return text;
}

// What stood in the place of each {}, with '/' between: ids and names. What may be an address, or
// is no text for the log, is a digest.
static const char *target_of(const ApiAudit *audit, const ApiCall *call)
{
    Buf out;
    Arena *arena = call->http->arena;
    buf_init(&out, TARGET_MAX);
    for (size_t i = 0; i < API_PARAMS_MAX && call->params[i].len > 0; i++) {
        buf_cstr(&out, i > 0 ? "/" : "");
        buf_str(&out, call->params[i]);
    }
    Str text = arena_str(arena, buf_view(&out));
    bool plain =
        !out.full && str_find(text, '@') < 0 && str_find(text, '+') < 0 && !str_has_control(text);
    buf_done(&out);
    return plain ? arena_cstr(arena, text)
                 : arena_printf(arena, "digest %s", keyed(audit, "target", text, arena));
}

// Of "00-<trace id>-<span id>-<flags>"; empty: there is none.
static const char *trace_of(const ApiCall *call)
{
    Str parent = http_header(call->http, "traceparent");
    Str id = str_slice(parent, 3, 3 + TRACE_LEN);
    bool good = id.len == TRACE_LEN && str_starts(parent, STR("00-"));
    for (size_t i = 0; good && i < id.len; i++) {
        good = (id.ptr[i] >= '0' && id.ptr[i] <= '9') || (id.ptr[i] >= 'a' && id.ptr[i] <= 'f');
    }
    return good ? arena_cstr(call->http->arena, id) : "";
}

static bool wants_reveal(const ApiCall *call)
{
    return str_eq(http_query(call->http, "reveal"), STR("true"));
}

static void on_noted(void *ctx, const Error *err, const AuditHead *head)
{
    (void)head;
    ApiCall *call = ctx;
    if (err != NULL) {
        api_answer_failure(call, err);
        return;
    }
    CRASH_POINT("api.noted");
    api_run(call);
}

static void note(const ApiAudit *audit, ApiCall *call, AuditKind kind)
{
    char address[HTTP_ADDRESS_TEXT_SIZE];
    HttpRequest *http = call->http;
    Arena *arena = http->arena;
    bool reads = http->body.len == 0;
    http_address_format(&http->client, address);
    const AuditDetail details[] = {
        {"address_hash", keyed(audit, "address", str_from(address), arena)},
        {"trace", trace_of(call)},
        {"body_digest", reads ? "" : keyed(audit, "body", http->body, arena)},
    };
    audit_log_append(
        audit->log,
        &(AuditNote){
            .kind = kind,
            .tenant = call->tenant,
            .action = arena_printf(arena, "%s %s", call->route->method, call->route->path),
            .actor = call->actor,
            .target = target_of(audit, call),
            .request_id = http->id,
            .program = audit->program,
            .details = details,
            .detail_count = sizeof details / sizeof details[0] - (reads ? 1 : 0),
            .at_us = http->received_at_us,
        },
        on_noted, call);
}

void api_audit_run(const ApiAudit *audit, ApiCall *call)
{
    AuditKind kind = AUDIT_WRITE;
    const ApiAct act = {
        .method = call->http->method,
        .scope = call->route->scope,
        .reveals = wants_reveal(call),
        .person = call->person,
    };
    if (audit->log == NULL || !api_audit_wants(&act, &kind)) {
        api_run(call);
    } else {
        note(audit, call, kind);
    }
}
