// SPDX-License-Identifier: Apache-2.0
#include "common/bus/topology/accounts.h"

#include <stdio.h>
#include <string.h>

#include "common/base/id.h"
#include "common/bus/topology/nats_rights.h"
#include "common/bus/topology/topology.h"

// ---- reading ----

static bool next_word(Str *rest, Str *ret)
{
    *rest = str_trim(*rest);
    return rest->len > 0 && str_split(rest, ' ', ret);
}

static ptrdiff_t find_service(Str name)
{
    size_t count;
    const NatsRights *access = nats_rights(&count);
    for (size_t i = 0; i < count; i++) {
        if (str_eq(str_from(access[i].service), name)) {
            return (ptrdiff_t)i;
        }
    }
    return -1;
}

static Account *find_account(const Accounts *accounts, Str name)
{
    for (size_t i = 0; i < accounts->count; i++) {
        if (str_eq(accounts->at[i].name, name)) {
            return &accounts->at[i];
        }
    }
    return NULL;
}

// "shop-3" of application or subscriber "shop".
static bool is_reader_of(const Account *owner, const Account *subscriber)
{
    char name[ACCOUNT_NAME_MAX + 1], reader[READER_NAME_SIZE];
    bool both = subscriber->kind == ACCOUNT_SUBSCRIBER && str_to_c(owner->name, name, sizeof name);
    for (unsigned i = 0; both && i < topology_reader_names("STATUS"); i++) {
        topology_reader_name(reader, name, i);
        if (str_eq(str_from(reader), subscriber->name)) {
            return true;
        }
    }
    return false;
}

static bool refuse_consumer(const Account *owner, const Account *subscriber, Error *err)
{
    const char *kind = owner->kind == ACCOUNT_SUBSCRIBER ? "subscriber" : "application";
    return error_set(
        err, ERROR_PERMANENT,
        "'%.*s' is a consumer of %s '%.*s' (HINT: choose another name for the subscriber)",
        STR_ARG(subscriber->name), kind, STR_ARG(owner->name));
}

// A subscriber has a consumer of its name, and both kinds make, read and delete those of their
// readers' names.
static bool check_consumers(const Accounts *accounts, const Account *account, Error *err)
{
    for (size_t i = 0; i < accounts->count; i++) {
        const Account *other = &accounts->at[i];
        if (is_reader_of(account, other)) {
            return refuse_consumer(account, other, err);
        }
        if (is_reader_of(other, account)) {
            return refuse_consumer(other, account, err);
        }
    }
    return true;
}

// A name that begins as one of ours could be that of a service's consumer.
static bool check_name(const Accounts *accounts, Str name, Error *err)
{
    size_t count;
    const NatsRights *access = nats_rights(&count);
    if (!id_is_key(name) || name.len > ACCOUNT_NAME_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "'%.*s' is not a name: 1 to %d of a-z 0-9 '_' '-'", STR_ARG(name),
            ACCOUNT_NAME_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        if (str_starts(name, str_from(access[i].service))) {
            return error_set(
                err, ERROR_PERMANENT,
                "'%.*s' begins like a user of Stentor's own services, '%s' (HINT: choose another "
                "name)",
                STR_ARG(name), access[i].service);
        }
    }
    return find_account(accounts, name) == NULL ||
           error_set(err, ERROR_PERMANENT, "'%.*s' is given twice", STR_ARG(name));
}

// clang-format off
static const struct {
    const char *name, *tenants, *shape;
} kinds[] = {
    [ACCOUNT_APPLICATION] = {"application", "tenants=", "application NAME tenants=TENANT,..."},
    [ACCOUNT_RELAY]       = {"relay",       "tenants=", "relay NAME tenants=TENANT,..."},
    [ACCOUNT_SUBSCRIBER]  = {"subscriber",  "tenant=",  "subscriber NAME tenant=TENANT"},
};
// clang-format on

static bool take_tenants(Account *account, Str list, Error *err)
{
    Str tenant;
    if (str_eq(list, STR("*")) && account->kind != ACCOUNT_SUBSCRIBER) {
        return true;
    }
    while (list.len > 0 && str_split(&list, ',', &tenant)) {
        if (!id_is_tenant(tenant)) {
            return error_set(err, ERROR_PERMANENT, "'%.*s' is not a tenant id", STR_ARG(tenant));
        }
        if (account->tenant_count == ACCOUNT_TENANTS_MAX) {
            return error_set(
                err, ERROR_PERMANENT,
                "more than %d tenants (HINT: a second application, or tenants=*)",
                ACCOUNT_TENANTS_MAX);
        }
        account->tenants[account->tenant_count++] = tenant;
    }
    bool enough = account->kind != ACCOUNT_SUBSCRIBER ? account->tenant_count > 0
                                                      : account->tenant_count == 1;
    return enough || error_set(
                         err, ERROR_PERMANENT, "expected %s tenant",
                         account->kind != ACCOUNT_SUBSCRIBER ? "at least one" : "exactly one");
}

static bool take_account(Accounts *accounts, AccountKind kind, Str rest, Error *err)
{
    Str prefix = str_from(kinds[kind].tenants);
    Account account = {.kind = kind};
    Str tenants = STR_EMPTY;
    bool shaped = next_word(&rest, &account.name) && next_word(&rest, &tenants) &&
                  str_starts(tenants, prefix) && str_trim(rest).len == 0;
    if (!shaped) {
        return error_set(err, ERROR_PERMANENT, "expected '%s'", kinds[kind].shape);
    }
    if (accounts->count == ACCOUNTS_MAX) {
        return error_set(err, ERROR_PERMANENT, "more than %d accounts", ACCOUNTS_MAX);
    }
    if (!check_name(accounts, account.name, err) || !check_consumers(accounts, &account, err) ||
        !take_tenants(&account, str_slice(tenants, prefix.len, tenants.len), err)) {
        return false;
    }
    accounts->at[accounts->count++] = account;
    return true;
}

static bool take_password(Accounts *accounts, Str name, Str password, Error *err)
{
    ptrdiff_t service = find_service(name);
    Account *account = find_account(accounts, name);
    Str *place = service >= 0      ? &accounts->passwords[service]
                 : account != NULL ? &account->password
                                   : NULL;
    if (place == NULL) {
        return error_set(
            err, ERROR_PERMANENT,
            "no user is called '%.*s' (HINT: before it a line 'application %.*s "
            "tenants=TENANT,...', "
            "or one that begins with 'relay' or 'subscriber')",
            STR_ARG(name), STR_ARG(name));
    }
    if (place->len > 0 || password.len == 0) {
        return error_set(
            err, ERROR_PERMANENT, "'%.*s' has %s password", STR_ARG(name),
            password.len == 0 ? "an empty" : "a second");
    }
    *place = password;
    return true;
}

static bool take_line(Accounts *accounts, Str line, Error *err)
{
    Str rest = str_trim(line), word;
    if (rest.len == 0 || rest.ptr[0] == '#') {
        return true;
    }
    Str words = rest;
    (void)next_word(&words, &word);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (str_eq(word, str_from(kinds[i].name))) {
            return take_account(accounts, (AccountKind)i, words, err);
        }
    }
    ptrdiff_t equals = str_find(rest, '=');
    if (equals <= 0) {
        return error_set(
            err, ERROR_PERMANENT,
            "expected USER=PASSWORD, or a line that begins with application, relay or subscriber");
    }
    return take_password(
        accounts, str_slice(rest, 0, (size_t)equals),
        str_trim(str_slice(rest, (size_t)equals + 1, rest.len)), err);
}

static bool check_passwords(const Accounts *accounts, Error *err)
{
    size_t count;
    const NatsRights *access = nats_rights(&count);
    for (size_t i = 0; i < count; i++) {
        if (accounts->passwords[i].len == 0) {
            return error_set(err, ERROR_CONFIG, "no password for '%s'", access[i].service);
        }
    }
    for (size_t i = 0; i < accounts->count; i++) {
        if (accounts->at[i].password.len == 0) {
            return error_set(
                err, ERROR_CONFIG, "no password for '%.*s'", STR_ARG(accounts->at[i].name));
        }
    }
    return true;
}

bool accounts_read(Str text, Arena *arena, Accounts *ret, Error *err)
{
    size_t count;
    nats_rights(&count);
    Accounts accounts = {
        .at = arena_array(arena, ACCOUNTS_MAX, sizeof(Account)),
        .passwords = arena_zalloc(arena, count * sizeof(Str))};
    Str line;
    for (int number = 1; text.len > 0 && str_split(&text, '\n', &line); number++) {
        if (!take_line(&accounts, line, err)) {
            return error_wrap(err, "line %d", number);
        }
    }
    if (!check_passwords(&accounts, err)) {
        return false;
    }
    *ret = accounts;
    return true;
}

// ---- what each may reach ----

// In our account `subject`; in theirs `local`, NULL: the same.
typedef struct Reach {
    bool is_stream;    // what we publish; else a service: what they may ask
    bool many_answers; // a pull has as many as messages
    const char *subject, *local;
} Reach;

typedef void (*EachReach)(Buf *out, const Account *account, const Reach *reach);

enum { REACH_SIZE = 256 };

static const char *spell(char out[REACH_SIZE], const char *format, Str first, Str second)
{
    size_t at = 0;
    for (const char *p = format; *p != '\0' && at + 1 < REACH_SIZE; p++) {
        Str part = *p == '1' ? first : *p == '2' ? second : str_of(p, 1);
        size_t len = part.len < REACH_SIZE - 1 - at ? part.len : REACH_SIZE - 1 - at;
        memcpy(out + at, part.ptr, len);
        at += len;
    }
    out[at] = '\0';
    return out;
}

// JetStream's API is called by another name there: nats-server 2.9 also answers the usual one, with
// an error, in an account without JetStream.
static void reach_api(
    EachReach each, Buf *out, const Account *account, bool many, const char *call, Str first,
    Str second)
{
    char rest[REACH_SIZE], subject[REACH_SIZE], local[REACH_SIZE];
    spell(rest, call, first, second);
    spell(subject, "$JS.API.1", str_from(rest), STR_EMPTY);
    spell(local, "$JS." ACCOUNT_DOMAIN ".API.1", str_from(rest), STR_EMPTY);
    each(out, account, &(Reach){.many_answers = many, .subject = subject, .local = local});
}

static void reach(EachReach each, Buf *out, const Account *account, const char *subject)
{
    each(out, account, &(Reach){.subject = subject});
}

// What a tenant's subscribers and applications may read.
static const struct {
    const char *stream, *filter, *live;
} open_streams[] = {
    {"STATUS", "ntf.status.1.>", "live.status.1.>"},
    {"REPLIES", "ntf.reply.1.>", "live.reply.1.>"},
};
enum { OPEN_STREAMS = sizeof open_streams / sizeof open_streams[0] };

// One consumer of the subscriber: made with a filter within its tenant, which stands in the
// subject; read, acknowledged, deleted.
static void reach_consumer(
    EachReach each, Buf *out, const Account *account, size_t stream, Str name)
{
    char subject[REACH_SIZE], create[REACH_SIZE], filter[REACH_SIZE];
    Str of = str_from(open_streams[stream].stream);
    spell(create, "CONSUMER.CREATE.1.2.", of, name);
    spell(filter, open_streams[stream].filter, account->tenants[0], STR_EMPTY);
    reach_api(each, out, account, false, "12", str_from(create), str_from(filter));
    reach_api(each, out, account, false, "CONSUMER.INFO.1.2", of, name);
    reach_api(each, out, account, true, "CONSUMER.MSG.NEXT.1.2", of, name);
    reach_api(each, out, account, false, "CONSUMER.DELETE.1.2", of, name);
    reach(each, out, account, spell(subject, "$JS.ACK.1.2.>", of, name));
    reach(each, out, account, spell(subject, "$JS.ACK.*.*.1.2.>", of, name));
}

static void reach_subscriber(EachReach each, Buf *out, const Account *account)
{
    char subject[REACH_SIZE], name[ACCOUNT_NAME_MAX + 1], reader[READER_NAME_SIZE];
    (void)str_to_c(account->name, name, sizeof name);
    reach_api(each, out, account, false, "INFO", STR_EMPTY, STR_EMPTY);
    for (size_t s = 0; s < OPEN_STREAMS; s++) {
        each(
            out, account,
            &(Reach){
                .is_stream = true,
                .subject = spell(subject, open_streams[s].live, account->tenants[0], STR_EMPTY)});
        reach_consumer(each, out, account, s, account->name);
        for (unsigned i = 0; i < topology_reader_names(open_streams[s].stream); i++) {
            topology_reader_name(reader, name, i);
            reach_consumer(each, out, account, s, str_from(reader));
        }
    }
}

// Readers of one stream: consumers of the application's names, with no other filter than the
// tenant's, which stands in the subject.
static void reach_stream(
    EachReach each, Buf *out, const Account *account, const char *stream, const char *filter)
{
    char name[ACCOUNT_NAME_MAX + 1], reader[READER_NAME_SIZE], create[REACH_SIZE];
    (void)str_to_c(account->name, name, sizeof name);
    Str of = str_from(stream);
    reach_api(each, out, account, false, "STREAM.INFO.1", of, STR_EMPTY);
    for (unsigned i = 0; i < topology_reader_names(stream); i++) {
        topology_reader_name(reader, name, i);
        reach_api(each, out, account, true, "CONSUMER.MSG.NEXT.1.2", of, str_from(reader));
        reach_api(each, out, account, false, "CONSUMER.DELETE.1.2", of, str_from(reader));
        if (account->tenant_count == 0) {
            reach_api(each, out, account, false, "CONSUMER.CREATE.1.2", of, str_from(reader));
        }
        for (size_t t = 0; t < account->tenant_count; t++) {
            char own[REACH_SIZE];
            spell(own, filter, account->tenants[t], STR_EMPTY);
            spell(create, "CONSUMER.CREATE.1.2.", of, str_from(reader));
            reach_api(each, out, account, false, "12", str_from(create), str_from(own));
        }
    }
}

// To ingest, which seals and stores them.
static void reach_events(EachReach each, Buf *out, const Account *account, const char *local)
{
    char subject[REACH_SIZE];
    snprintf(subject, sizeof subject, "in.%s", local);
    each(out, account, &(Reach){.subject = subject, .local = local});
}

static void reach_application(EachReach each, Buf *out, const Account *account)
{
    char local[SUBJECT_SIZE];
    if (account->tenant_count == 0) {
        reach_events(each, out, account, "evt.>");
    }
    for (size_t t = 0; t < account->tenant_count; t++) {
        snprintf(local, sizeof local, "evt." STR_FMT ".>", STR_ARG(account->tenants[t]));
        reach_events(each, out, account, local);
    }
    for (size_t s = 0; s < OPEN_STREAMS; s++) {
        reach_stream(each, out, account, open_streams[s].stream, open_streams[s].filter);
    }
    reach_stream(each, out, account, "DEAD", "ntf.dead.ingest.1");
}

static void each_reach(EachReach each, Buf *out, const Account *account)
{
    if (account->kind == ACCOUNT_SUBSCRIBER) {
        reach_subscriber(each, out, account);
    } else {
        reach_application(each, out, account);
    }
}

// ---- writing ----

static const char *kind_name(const Account *account)
{
    return kinds[account->kind].name;
}

static void write_export(Buf *out, const Account *account, const Reach *reach)
{
    buf_printf(
        out, "      { %s: \"%s\"%s, accounts: [\"%s-%.*s\"] }\n",
        reach->is_stream ? "stream" : "service", reach->subject,
        reach->many_answers ? ", response_type: stream" : "", kind_name(account),
        STR_ARG(account->name));
}

static void write_import(Buf *out, const Account *account, const Reach *reach)
{
    (void)account;
    buf_printf(
        out, "      { %s: { account: STENTOR, subject: \"%s\" }",
        reach->is_stream ? "stream" : "service", reach->subject);
    if (reach->local != NULL) {
        buf_printf(out, ", to: \"%s\"", reach->local);
    }
    buf_cstr(out, " }\n");
}

static void write_account(Buf *out, const Account *account)
{
    buf_printf(
        out, "  \"%s-%.*s\" {\n    users = [ { user: ", kind_name(account), STR_ARG(account->name));
    buf_json(out, account->name);
    buf_cstr(out, ", password: ");
    buf_json(out, account->password);
    buf_cstr(out, " } ]\n    imports = [\n");
    each_reach(write_import, out, account);
    buf_cstr(out, "    ]\n  }\n");
}

static Str password_of(void *ctx, size_t index)
{
    return ((const Accounts *)ctx)->passwords[index];
}

bool accounts_write(Buf *out, const Accounts *accounts)
{
    buf_cstr(
        out, "authorization { timeout: 5 }\naccounts {\n  STENTOR {\n    jetstream: enabled\n");
    nats_rights_write_users(out, password_of, (void *)(uintptr_t)accounts);
    buf_cstr(out, "    exports = [\n");
    for (size_t i = 0; i < accounts->count; i++) {
        each_reach(write_export, out, &accounts->at[i]);
    }
    buf_cstr(out, "    ]\n  }\n");
    for (size_t i = 0; i < accounts->count; i++) {
        write_account(out, &accounts->at[i]);
    }
    return buf_cstr(out, "}\n") && !out->full;
}
