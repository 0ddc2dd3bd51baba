// SPDX-License-Identifier: Apache-2.0
// Our own users: what NatsRights says in short, spelled out in NATS subjects. A user gets
// its own inbox, its subjects, the pulls and acks (both forms: a grant that lacks the second loses
// acks silently) of its consumers, and for the streams it reads consumers of its own names: no
// right reaches a consumer of another service.
#include "common/bus/topology/nats_rights.h"
#include "common/bus/topology/topology.h"

typedef struct List {
    Buf *out;
    bool first;
} List;

static void add(List *list, const char *format, Str name, Str second)
{
    buf_cstr(list->out, list->first ? "\"" : ", \"");
    for (const char *p = format; *p != '\0'; p++) {
        if (*p == '1') {
            buf_str(list->out, name);
        } else if (*p == '2') {
            buf_str(list->out, second);
        } else {
            buf_char(list->out, *p);
        }
    }
    buf_char(list->out, '"');
    list->first = false;
}

static bool next_word(Str *rest, Str *ret)
{
    while (rest->len > 0 && rest->ptr[0] == ' ') {
        *rest = str_slice(*rest, 1, rest->len);
    }
    return rest->len > 0 && str_split(rest, ' ', ret);
}

static void add_consumes(List *list, const NatsRights *access)
{
    Str rest = str_from(access->consumes), stream;
    char name[64];
    while (next_word(&rest, &stream)) {
        if (!str_to_c(stream, name, sizeof name)) {
            continue;
        }
        const ConsumerSpec *consumer = topology_consumer(access->service, name);
        if (consumer == NULL) {
            continue; // a unit test finds such a row
        }
        Str durable = str_from(consumer->name);
        add(list, "$JS.API.CONSUMER.MSG.NEXT.1.2", stream, durable);
        add(list, "$JS.API.CONSUMER.INFO.1.2", stream, durable);
        add(list, "$JS.API.STREAM.MSG.GET.1", stream, STR_EMPTY); // ack_guard.c
        add(list, "$JS.ACK.1.2.>", stream, durable);
        add(list, "$JS.ACK.*.*.1.2.>", stream, durable);
        if (consumer->moves) {
            add(list, "$JS.API.CONSUMER.CREATE.1.2", stream, durable);
            add(list, "$JS.API.CONSUMER.CREATE.1.2.>", stream, durable);
            add(list, "$JS.API.CONSUMER.DELETE.1.2", stream, durable);
        }
    }
}

// The name stands in the subject: the legacy create takes it from the request, and on nats-server
// 2.9 so changes any consumer of the stream.
static void add_readers(List *list, const char *service, Str stream)
{
    char name[64], reader[READER_NAME_SIZE];
    if (!str_to_c(stream, name, sizeof name)) {
        return;
    }
    for (unsigned i = 0; i < topology_reader_names(name); i++) {
        topology_reader_name(reader, service, i);
        add(list, "$JS.API.CONSUMER.CREATE.1.2", stream, str_from(reader));
        add(list, "$JS.API.CONSUMER.CREATE.1.2.>", stream, str_from(reader));
        add(list, "$JS.API.CONSUMER.MSG.NEXT.1.2", stream, str_from(reader));
        add(list, "$JS.API.CONSUMER.DELETE.1.2", stream, str_from(reader));
    }
}

static void add_publish(List *list, const NatsRights *access)
{
    Str rest = str_from(access->publish), word;
    while (next_word(&rest, &word)) {
        add(list, "1", word, STR_EMPTY);
    }
    add_consumes(list, access);
    Str prefix = STR("stentor-"), name = str_from(access->service);
    if (!str_eq(name, STR("stentor-cli"))) { // its heartbeats
        add(list, "live.process.1.*", str_slice(name, prefix.len, name.len), STR_EMPTY);
    }
    rest = str_from(access->reads);
    while (next_word(&rest, &word)) {
        add(list, "$JS.API.STREAM.INFO.1", word, STR_EMPTY);
        add_readers(list, access->service, word);
    }
}

static void write_user(Buf *out, const NatsRights *access, Str password)
{
    List publish = {out, true}, subscribe = {out, true};
    buf_cstr(out, "      { user: \"");
    buf_cstr(out, access->service);
    buf_cstr(out, "\", password: ");
    buf_json(out, password);
    bool is_admin = str_eq(str_from(access->publish), STR(">"));
    if (!is_admin) {
        buf_cstr(out, "\n        permissions: {\n          publish: [");
        add_publish(&publish, access);
        buf_cstr(out, "]\n          subscribe: [");
        add(&subscribe, "_INBOX.1.>", str_from(access->service), STR_EMPTY);
        Str rest = str_from(nats_hears(access->service)), word;
        while (next_word(&rest, &word)) {
            add(&subscribe, "1", word, STR_EMPTY);
        }
        if (access->serves != NULL) {
            add(&subscribe, "1", str_from(access->serves), STR_EMPTY);
        }
        buf_cstr(out, "] }");
    }
    buf_cstr(out, " }\n");
}

void nats_rights_write_users(Buf *out, Str (*password_of)(void *ctx, size_t index), void *ctx)
{
    size_t count;
    const NatsRights *access = nats_rights(&count);
    buf_cstr(out, "    users = [\n");
    for (size_t i = 0; i < count; i++) {
        write_user(out, &access[i], password_of(ctx, i));
    }
    buf_cstr(out, "    ]\n");
}
