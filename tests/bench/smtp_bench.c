// SPDX-License-Identifier: Apache-2.0
// links: svc_dispatcher
// bench_smtp URL MAILS CONNECTIONS: composes one 4 KB mail over and over (us), then sends MAILS of
// them through the SMTP pool and prints mails/s and this process's CPU microseconds a mail. Beside
// it: smtp-sink -c 127.0.0.1:PORT 1000
#define _DEFAULT_SOURCE // getrusage
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "common/base/arena.h"
#include "common/base/clock.h"
#include "common/mime/mime.h"
#include "services/dispatcher/vendor/smtp/smtp_pool.h"

enum { BODY_BYTES = 4096, COMPOSE_ROUNDS = 20000, IN_FLIGHT = 1024 };

typedef struct Bench {
    uv_loop_t loop;
    SmtpPool *pool;
    Str message;
    long wanted, begun, done, failed;
    Mail mails[IN_FLIGHT];
} Bench;

static double cpu_us(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1e6 +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static void fill_body(Buf *html)
{
    while (html->len < BODY_BYTES) {
        buf_cstr(
            html, "<p class=\"line\" style=\"margin:0\">Dear Alice, your order no. 4711 has left "
                  "our house "
                  "and will be with you on Friday.</p>\n");
    }
}

static void compose(const Buf *html, Buf *out)
{
    MimeMail mail = {
        .from_name = STR("Demo Shop"),
        .from = STR("shop@example.com"),
        .to = STR("alice@example.org"),
        .subject = STR("Your order no. 4711 is on its way"),
        .html = buf_view(html),
        .id = STR("ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        .id_domain = STR("mail.example.com"),
        .date_us = 1795199136123456,
    };
    buf_clear(out);
    if (!mime_compose(&mail, out, NULL)) {
        abort();
    }
}

static void bench_compose(Bench *bench, Buf *out)
{
    Buf html;
    buf_init(&html, 64 * 1024);
    fill_body(&html);
    int64_t begin = clock_mono_us();
    for (int i = 0; i < COMPOSE_ROUNDS; i++) {
        compose(&html, out);
    }
    double each = (double)(clock_mono_us() - begin) / COMPOSE_ROUNDS;
    printf("compose %zu B of html into %zu B: %.2f us\n", html.len, out->len, each);
    buf_done(&html);
    bench->message = buf_view(out);
}

static void begin_mail(Bench *bench, Mail *mail);

static void on_mail_done(void *ctx, Mail *mail, const SendResult *result)
{
    Bench *bench = ctx;
    bench->done++;
    bench->failed += result->state == SEND_ANSWERED && result->reply == REPLY_ACCEPTED ? 0 : 1;
    begin_mail(bench, mail);
}

static void begin_mail(Bench *bench, Mail *mail)
{
    if (bench->begun == bench->wanted) {
        return;
    }
    bench->begun++;
    *mail = (Mail){
        .from = STR("shop@example.com"),
        .to = STR("alice@example.org"),
        .message = bench->message,
        .lane = PRIORITY_NORMAL,
        .give_up_at_ms = UINT64_MAX,
        .held_until_ms = UINT64_MAX,
        .on_done = on_mail_done,
        .ctx = bench,
    };
    smtp_pool_send(bench->pool, mail);
}

static void on_pool_closed(void *ctx)
{
    (void)ctx;
}

static int fail(const Error *err)
{
    fprintf(stderr, "bench_smtp: %s\n", err->text);
    return 1;
}

int main(int argc, char **argv)
{
    static Bench bench;
    SmtpOptions options = {
        .helo = "localhost",
        .ca_file = "",
        .mails_max = 1000000,
        .connect_ms = 5000,
        .command_ms = 10000,
        .data_ms = 10000,
        .idle_ms = 10000};
    Error err = {0};
    int64_t connections = 0;
    int64_t wanted = 0;
    if (argc != 4 || !str_to_i64(str_from(argv[2]), &wanted) ||
        !str_to_i64(str_from(argv[3]), &connections) || connections < 1 ||
        connections > SMTP_CONNECTIONS_MAX) {
        fprintf(stderr, "usage: bench_smtp smtp://HOST:PORT MAILS CONNECTIONS\n");
        return 2;
    }
    bench.wanted = (long)wanted;
    options.connections = (unsigned)connections;
    Buf out;
    buf_init(&out, MIME_BYTES_MAX);
    bench_compose(&bench, &out);
    uv_loop_init(&bench.loop);
    if (!smtp_url_parse(str_from(argv[1]), &options, &err) ||
        !smtp_tls_mode_parse(STR("off"), &options, &err) ||
        (bench.pool = smtp_pool_new(&bench.loop, &options, &err)) == NULL) {
        return fail(&err);
    }
    double cpu = cpu_us();
    int64_t begin = clock_mono_us();
    for (int i = 0; i < IN_FLIGHT; i++) {
        begin_mail(&bench, &bench.mails[i]);
    }
    while (bench.done < bench.wanted) {
        uv_run(&bench.loop, UV_RUN_ONCE);
    }
    double seconds = (double)(clock_mono_us() - begin) / 1e6;
    printf(
        "%ld mails over %u connections: %.0f/s, %.1f us of cpu each, %ld not accepted\n",
        bench.done, options.connections, (double)bench.done / seconds,
        (cpu_us() - cpu) / (double)bench.done, bench.failed);
    smtp_pool_close(bench.pool, on_pool_closed, NULL);
    uv_run(&bench.loop, UV_RUN_DEFAULT);
    uv_loop_close(&bench.loop);
    buf_done(&out);
    return bench.failed > 0;
}
