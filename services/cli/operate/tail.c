// SPDX-License-Identifier: Apache-2.0
// tail: status events as they happen, from the STATUS stream.
#include <signal.h>

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/bus/consume/reader.h"
#include "common/codec/event.h"
#include "common/model/enums.h"
#include "common/session/session.h"
#include "services/cli/cli.h"
#include "stentor/v1/status.pb-c.h"

typedef struct Tail {
    Cli *cli;
    Session *session;
    int64_t left; // events still to print; negative: no end
    uv_signal_t interrupt;
} Tail;

static void print_json(
    const Stentor__V1__NotificationStatus *event, const BusMessage *message, const char *at)
{
    const char *const pairs[][2] = {
        {"id", event->meta->notification_id},
        {"tenant", event->meta->tenant},
        {"channel", channel_name((Channel)event->channel)},
        {"status", status_name((Status)event->status)},
        {"at", at},
        {"event_id", event->meta->event_id},
        {"correlation_id", event->meta->correlation_id},
        {"template", event->template_},
        {"reason_code", event->reason_code},
        {"reason", event->reason},
    };
    Buf line;
    buf_init(&line, 64 * 1024);
    buf_printf(&line, "{\"sequence\":%llu", (unsigned long long)message->sequence);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (pairs[i][1][0] != '\0') {
            buf_printf(&line, ",\"%s\":", pairs[i][0]);
            buf_json(&line, str_from(pairs[i][1]));
        }
    }
    printf("%s}\n", buf_c(&line));
    buf_done(&line);
}

static void print_event(Tail *tail, const BusMessage *message)
{
    Error err = {0};
    Arena *arena = arena_new(0);
    const Stentor__V1__NotificationStatus *event =
        (const Stentor__V1__NotificationStatus *)event_unpack(
            &stentor__v1__notification_status__descriptor, message->payload, arena, &err);
    if (event == NULL || event->meta == NULL) {
        cli_note(
            tail->cli, "the event at sequence %llu cannot be read: %s",
            (unsigned long long)message->sequence, err.text);
        arena_free(arena);
        return;
    }
    char at[CLOCK_RFC3339_SIZE];
    clock_format(event->meta->occurred_at_us, at);
    if (tail->cli->json) {
        print_json(event, message, at);
    } else {
        printf(
            "%s  %-12s %-10s %s %s %s\n", at, event->meta->tenant,
            status_name((Status)event->status), event->meta->notification_id, event->reason_code,
            event->reason);
    }
    fflush(stdout);
    arena_free(arena);
}

static void on_reader_messages(void *ctx, const BusMessage *messages, size_t count)
{
    Tail *tail = ctx;
    for (size_t i = 0; i < count && tail->left != 0; i++) {
        print_event(tail, &messages[i]);
        tail->left -= tail->left > 0 ? 1 : 0;
    }
    if (tail->left == 0) {
        session_finish(tail->session, NULL);
    }
}

static void on_reader_caught_up(void *ctx)
{
    (void)ctx; // a tail goes on
}

static void on_reader_failed(void *ctx, const Error *err)
{
    Tail *tail = ctx;
    session_finish(tail->session, err);
}

static void on_reader_freed(void *ctx)
{
    session_wait_end(ctx, NULL);
}

static void on_signal(uv_signal_t *handle, int number)
{
    (void)number;
    session_finish(handle->data, NULL);
}

static bool follow(Tail *tail, const ReaderOptions *options, Error *err)
{
    Session *session = tail->session;
    uv_signal_init(&session->loop, &tail->interrupt);
    tail->interrupt.data = session;
    uv_signal_start(&tail->interrupt, on_signal, SIGINT);
    ReaderHandlers handlers = {on_reader_messages, on_reader_caught_up, on_reader_failed};
    Reader *reader = reader_new(session->bus, options, &handlers, tail);
    bool ok = session_run(session, 0, err);
    tail->left = 0;
    Error ignored;
    SessionWait freed = {.session = session};
    reader_free(reader, on_reader_freed, &freed);
    (void)session_wait(&freed, &ignored);
    uv_close((uv_handle_t *)&tail->interrupt, NULL); // gone once session_close() ran the loop
    return ok;
}

int cmd_tail(Cli *cli)
{
    Error err = {0};
    int64_t count = 0;
    bool everyone = args_has(&cli->args, "every-tenant");
    if (!args_int(&cli->args, "count", -1, 1, INT64_MAX, &count, &err) ||
        (!everyone && !cli_need(cli->settings.tenant, "STENTOR_TENANT", &err))) {
        return cli_fail(cli, &err);
    }
    Session session;
    if (!session_open(&session, &cli->settings.session, &err)) {
        return cli_fail(cli, &err);
    }
    Tail tail = {.cli = cli, .session = &session, .left = count};
    ReaderOptions options = {
        .stream = "STATUS",
        .filter =
            everyone ? NULL : arena_printf(cli->arena, "ntf.status.%s.>", cli->settings.tenant),
        .only_new = !args_has(&cli->args, "all"),
    };
    bool ok = follow(&tail, &options, &err);
    session_close(&session);
    return ok ? EXIT_DONE : cli_fail(cli, &err);
}
