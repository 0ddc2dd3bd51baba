// SPDX-License-Identifier: Apache-2.0
// links: svc_ingest stentor_template
// bench_gate_render [SECONDS]: what one core takes to decide about a notification and to render it:
// the gate's decision with a recipient's zone, quiet hours, preferences and consents, then the
// variables' JSON is read and subject, HTML (4 KB) and text of a template with 20 of them rendered.
// Prints each and their sum, gate_render_cpu_us; then what a freeze costs among 100,000 templates.
#define _DEFAULT_SOURCE // getrusage
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "common/base/arena.h"
#include "common/codec/event.h"
#include "common/model/rules/gate.h"
#include "common/request/catalog.h"
#include "common/template/template.h"
#include "stentor/v1/config.pb-c.h"

enum { VARIABLES = 20, BODY_BYTES = 4096, ROUND = 1000, TEMPLATES = 100000 };

#define NOW_US INT64_C(1795199136000000)
#define TENANT STR("acme")

typedef struct Bench {
    Zones *zones;
    GateTenant tenant;
    GatePreference preferences[6];
    GateConsent consents[2];
    GatePerson people[8];
    Template *subject;
    Template *html;
    Template *text;
    json_t *variables;
    char *json; // the same as they arrive
    Buf out;
    size_t html_bytes;
    long decided[GATE_GATHER + 1];
} Bench;

static double cpu_us(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1e6 +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static void must(bool ok, const Error *err)
{
    if (!ok) {
        (void)fprintf(stderr, "%s\n", err->text);
        exit(1);
    }
}

// ---- the gate ----

static void set_up_gate(Bench *b)
{
    static const char *const NAMES[] = {"Europe/Berlin", "America/New_York",    "Asia/Kolkata",
                                        "Asia/Tokyo",    "Australia/Lord_Howe", "Africa/Cairo",
                                        "Asia/Kabul",    "America/Sao_Paulo"};
    Error err = {0};
    b->zones = zones_new();
    b->tenant = (GateTenant){
        .quiet_hours = {1320, 420},
        .limits = {.per_minute = 100000},
        .recipient_limits = {.per_day = 20},
    };
    for (int i = 0; i < 6; i++) {
        b->preferences[i] = (GatePreference){
            .category = (Category)(CATEGORY_REMINDER + i),
            .channel = i % 2 == 0 ? CHANNEL_EMAIL : CHANNEL_NONE,
            .off = i == 1,
            .plan = {i == 3 ? FREQUENCY_DAILY : FREQUENCY_IMMEDIATE, 480, 0},
        };
    }
    b->consents[0] = (GateConsent){CATEGORY_MARKETING, CHANNEL_NONE, true};
    b->consents[1] = (GateConsent){CATEGORY_NONE, CHANNEL_SMS, false};
    for (size_t i = 0; i < 8; i++) {
        b->people[i] = (GatePerson){
            .zone = zones_get(b->zones, str_from(NAMES[i]), &err),
            .has_quiet_hours = i % 2 == 0,
            .quiet_hours = {1380, 360},
            .preferences = b->preferences,
            .preference_count = 6,
            .consents = b->consents,
            .consent_count = 2,
        };
        must(b->people[i].zone != NULL, &err);
    }
}

static void decide(Bench *b, long n)
{
    GateCase facts = {
        .tenant = &b->tenant,
        .person = &b->people[n % 8],
        .category = (Category)(1 + n % (CATEGORY_COUNT - 1)),
        .channel = CHANNEL_EMAIL,
        .priority = PRIORITY_NORMAL,
        .has_address = true,
        .expires_at_us = NOW_US + INT64_C(864000000000),
        .tenant_place = {n % 200000, n},
        .recipient_place = {n % 25, n % 25},
        .now_us = NOW_US + n * 61000000 % INT64_C(31536000000000),
    };
    facts.expires_at_us += facts.now_us - NOW_US;
    b->decided[gate_decide(&facts).verdict]++;
}

// ---- rendering ----

static void set_up_template(Bench *b)
{
    Error err = {0};
    Buf source;
    buf_init(&source, TEMPLATE_SOURCE_MAX);
    b->variables = json_object();
    buf_cstr(&source, "{{#if v0}}");
    for (int i = 0; i < VARIABLES; i++) {
        char name[16];
        char line[128];
        (void)snprintf(name, sizeof name, "v%d", i);
        (void)snprintf(
            line, sizeof line, "<p class=\"line\">Number %d: <b>{{%s}}</b></p>\n", i, name);
        buf_cstr(&source, line);
        (void)json_object_set_new(b->variables, name, json_string("Alice & Bob's 4711th order"));
    }
    buf_cstr(&source, "{{else}}nothing{{/if}}");
    while (source.len < BODY_BYTES - VARIABLES * 30) {
        buf_cstr(
            &source,
            "<p style=\"margin:0\">Your order has left our house and comes on Friday.</p>\n");
    }
    b->subject = template_compile(STR("Order {{v1}} for {{v2}}"), TEMPLATE_ESCAPE_NONE, NULL, &err);
    b->html = template_compile(buf_view(&source), TEMPLATE_ESCAPE_HTML, NULL, &err);
    b->text = template_compile(
        STR("Dear {{v0}}, your order {{v1}} is on its way. {{v2}} {{v3}}"), TEMPLATE_ESCAPE_NONE,
        NULL, &err);
    must(b->subject != NULL && b->html != NULL && b->text != NULL, &err);
    buf_done(&source);
    b->json = json_dumps(b->variables, JSON_COMPACT);
    buf_init(&b->out, TEMPLATE_OUTPUT_MAX);
}

static void render_one(Bench *b, const Template *tpl)
{
    Error err = {0};
    buf_clear(&b->out);
    must(template_render(tpl, b->variables, &b->out, &err), &err);
}

static void read_variables(Bench *b, long n)
{
    (void)n;
    json_error_t where;
    json_decref(b->variables);
    b->variables = json_loads(b->json, JSON_REJECT_DUPLICATES, &where);
}

static void render(Bench *b, long n)
{
    (void)n;
    render_one(b, b->subject);
    render_one(b, b->text);
    render_one(b, b->html);
    b->html_bytes = b->out.len;
}

// ---- measuring ----

static double measure(Bench *b, void (*work)(Bench *b, long n), double seconds)
{
    double began = cpu_us();
    long count = 0;
    while (cpu_us() - began < seconds * 1e6) {
        for (int i = 0; i < ROUND; i++) {
            work(b, count++);
        }
    }
    return (cpu_us() - began) / (double)count;
}

static void put_template(Catalog *catalog, size_t number)
{
    Arena *arena = arena_new(0);
    Stentor__V1__TemplateVersion event;
    stentor__v1__template_version__init(&event);
    event.tenant = arena_cstr(arena, TENANT);
    event.key = arena_printf(arena, "t%zu", number);
    event.version = arena_cstr(arena, STR("1.0.0"));
    event.status = STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ACTIVE;
    Str bytes = STR_EMPTY;
    Error err = {0};
    must(event_pack(&event.base, arena, &bytes, &err), &err);
    Str key = str_from(arena_printf(arena, "t%zu.1_0_0", number));
    must(catalog_template_changed(catalog, TENANT, key, bytes, &err), &err);
    arena_free(arena);
}

static double measure_freeze(const Catalog *catalog, size_t templates)
{
    enum { FREEZES = 200000 };
    Arena *arena = arena_new(0);
    double began = cpu_us();
    for (size_t i = 0; i < FREEZES; i++) {
        char key[24];
        int len = snprintf(key, sizeof key, "t%zu", i * 2654435761U % templates);
        Request request = {.template_key = str_of(key, (size_t)len), .channel = CHANNEL_EMAIL};
        FieldError err = {.field = ""};
        if (!catalog_freeze(catalog, TENANT, &request, arena, &err)) {
            abort();
        }
        if (i % ROUND == 0) {
            arena_reset(arena);
        }
    }
    double each = (cpu_us() - began) / FREEZES;
    arena_free(arena);
    return each;
}

static void bench_freeze(void)
{
    Catalog *catalog = catalog_new();
    for (size_t i = 0; i < 100; i++) {
        put_template(catalog, i);
    }
    double few = measure_freeze(catalog, 100);
    for (size_t i = 100; i < TEMPLATES; i++) {
        put_template(catalog, i);
    }
    printf(
        "freeze_cpu_us %.3f of 100 templates, %.3f of 100,000\n", few,
        measure_freeze(catalog, TEMPLATES));
    catalog_free(catalog);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 2;
    Bench b = {0};
    set_up_gate(&b);
    set_up_template(&b);
    double gate = measure(&b, decide, seconds);
    double reading = measure(&b, read_variables, seconds);
    double rendering = measure(&b, render, seconds);
    double sum = gate + reading + rendering;
    printf(
        "decided: %ld go, %ld suppressed, %ld deferred, %ld gathered\n", b.decided[GATE_GO],
        b.decided[GATE_SUPPRESS], b.decided[GATE_DEFER], b.decided[GATE_GATHER]);
    printf("gate_cpu_us %.3f\n", gate);
    printf("variables_cpu_us %.3f (%zu bytes of JSON)\n", reading, strlen(b.json));
    printf("render_cpu_us %.3f (%zu bytes of html)\n", rendering, b.html_bytes);
    printf("gate_render_cpu_us %.3f (wanted under 25)\n", sum);
    bench_freeze();
    template_free(b.subject);
    template_free(b.html);
    template_free(b.text);
    json_decref(b.variables);
    free(b.json);
    buf_done(&b.out);
    zones_free(b.zones);
    return sum < 25 ? 0 : 1;
}
