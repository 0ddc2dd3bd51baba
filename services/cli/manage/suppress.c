// SPDX-License-Identifier: Apache-2.0
// suppress list, add, release, export; suppress import stands in manage/suppress_import.c.
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/session/config_put.h"
#include "services/cli/manage/suppress_entry.h"

enum { LINE_BYTES_MAX = 64 * 1024, LIST_LIMIT = 100 };

// ---- list and export ----

typedef struct Listing {
    Cli *cli;
    bool csv;
    bool ndjson;
    bool all;
    SuppressionReason reason; // NONE: any
    int64_t now_us;
    int64_t limit; // 0: none
    int64_t count;
} Listing;

static const char *state_of(const Stentor__V1__Suppression *entry, int64_t now_us)
{
    if (entry->released_at_us > 0) {
        return "released";
    }
    return entry->expires_at_us > 0 && entry->expires_at_us <= now_us ? "expired" : "active";
}

static const char *category_of(const Stentor__V1__Suppression *entry)
{
    const char *name = category_name((Category)entry->category);
    return name[0] == '\0' ? "any" : name;
}

static void csv_value(const char *text, bool last)
{
    bool plain = strpbrk(text, ",\"\r\n") == NULL;
    fputs(plain ? "" : "\"", stdout);
    for (const char *c = text; *c != '\0'; c++) {
        // One record is one line: a break in a note becomes a space.
        fputc(*c == '\r' || *c == '\n' ? ' ' : *c, stdout);
        if (*c == '"') {
            fputc('"', stdout);
        }
    }
    fputs(plain ? "" : "\"", stdout);
    fputc(last ? '\n' : ',', stdout);
}

static void csv_time(int64_t at_us, bool last)
{
    char text[CLOCK_RFC3339_SIZE] = "";
    if (at_us > 0) {
        clock_format(at_us, text);
    }
    csv_value(text, last);
}

static void print_csv(const Stentor__V1__Suppression *entry)
{
    char hex[2 * SUPPRESSION_HASH_LEN + 1];
    hex_encode(entry->address_hash.data, SUPPRESSION_HASH_LEN, hex);
    csv_value(entry->id, false);
    csv_value(entry->masked_address, false);
    csv_value(hex, false);
    csv_value(channel_name((Channel)entry->channel), false);
    csv_value(category_of(entry), false);
    csv_value(suppression_reason_name((SuppressionReason)entry->reason), false);
    csv_value(entry->note, false);
    csv_time(entry->created_at_us, false);
    csv_value(entry->created_by, false);
    csv_time(entry->expires_at_us, false);
    csv_time(entry->released_at_us, false);
    csv_value(entry->released_by, true);
}

static void print_line(const Stentor__V1__Suppression *entry, int64_t now_us)
{
    char time[CLOCK_RFC3339_SIZE];
    clock_format(entry->created_at_us, time);
    printf(
        "%s  %-8s  %-13s  %-15s  %-8s  %.19sZ  %s  %s\n", entry->id,
        channel_name((Channel)entry->channel), category_of(entry),
        suppression_reason_name((SuppressionReason)entry->reason), state_of(entry, now_us), time,
        entry->created_by, entry->masked_address);
}

static void print_json(const Stentor__V1__Suppression *entry, const char *before, const char *after)
{
    Buf out;
    buf_init(&out, LINE_BYTES_MAX);
    suppression_json(&out, entry);
    printf("%s%s%s", before, buf_c(&out), after);
    buf_done(&out);
}

static bool on_entry(void *ctx, Stentor__V1__Suppression *entry, uint64_t sequence)
{
    (void)sequence;
    Listing *listing = ctx;
    bool wanted = listing->all || strcmp(state_of(entry, listing->now_us), "active") == 0;
    if (!wanted ||
        (listing->reason != SUPPRESSION_NONE && (int)entry->reason != (int)listing->reason)) {
        return true;
    }
    if (listing->csv) {
        print_csv(entry);
    } else if (listing->ndjson) {
        print_json(entry, "", "\n");
    } else if (listing->cli->json) {
        print_json(entry, listing->count == 0 ? "[" : ",", "");
    } else {
        print_line(entry, listing->now_us);
    }
    listing->count++;
    return listing->limit == 0 || listing->count < listing->limit;
}

// "<channel>.*.<hash>"; the entry of an address may have been made under any hash key of the file.
static bool want_address(Suppress *suppress, const char *address, SuppressLine *line, Error *err)
{
    HashKeys keys = master_hash_keys(suppress->master);
    SuppressReading reading = {
        .defaults = *line,
        .tenant = str_from(suppress->tenant),
    };
    for (size_t i = 0; i < keys.count; i++) {
        reading.hash_key = keys.keys[i];
        if (!suppress_address_parse(&reading, str_from(address), suppress->cli->arena, line, err)) {
            return error_wrap(err, "--address");
        }
        memcpy(suppress->wanted[suppress->wanted_count++], line->hash, SUPPRESSION_HASH_LEN);
    }
    return true;
}

static bool make_filter(Suppress *suppress, const char **ret, Error *err)
{
    const char *channel = args_flag(&suppress->cli->args, "channel");
    const char *address = args_flag(&suppress->cli->args, "address");
    char hex[2 * SUPPRESSION_HASH_LEN + 1] = "*";
    SuppressLine line;
    if (!suppress_defaults(suppress, &line, err)) {
        return false;
    }
    if (address != NULL) {
        if (!want_address(suppress, address, &line, err)) {
            return false;
        }
        if (suppress->wanted_count == 1) {
            hex_encode(suppress->wanted[0], SUPPRESSION_HASH_LEN, hex);
        }
        channel = channel_name(line.channel);
    }
    *ret = arena_printf(suppress->cli->arena, "%s.*.%s", channel != NULL ? channel : "*", hex);
    return true;
}

static int list(Cli *cli, Listing *listing)
{
    Error err = {0};
    Suppress suppress;
    const char *filter = NULL;
    const char *reason = args_flag(&cli->args, "reason");
    listing->cli = cli;
    listing->all = args_has(&cli->args, "all");
    listing->now_us = clock_now_us();
    if (!suppress_open(&suppress, cli, args_has(&cli->args, "address"), &err)) {
        return cli_fail(&err);
    }
    bool ok = make_filter(&suppress, &filter, &err);
    if (ok && reason != NULL) {
        (void)suppression_reason_from_name(str_from(reason), &listing->reason); // checked above
    }
    ok = ok && suppress_each(&suppress, filter, on_entry, listing, &err);
    suppress_close(&suppress);
    return ok ? EXIT_DONE : cli_fail(&err);
}

int cmd_suppress_list(Cli *cli)
{
    Listing listing = {0};
    Error err = {0};
    if (!args_int(&cli->args, "limit", LIST_LIMIT, 0, INT64_MAX, &listing.limit, &err)) {
        return cli_fail(&err);
    }
    int status = list(cli, &listing);
    if (status == EXIT_DONE && cli->json) {
        printf(listing.count == 0 ? "[]\n" : "]\n");
    } else if (status == EXIT_DONE && listing.count == 0) {
        fprintf(stderr, "nothing is suppressed there\n");
    }
    return status;
}

int cmd_suppress_export(Cli *cli)
{
    Listing listing = {0};
    Error err = {0};
    const char *format = args_flag(&cli->args, "format");
    listing.csv = format == NULL || strcmp(format, "csv") == 0;
    listing.ndjson = !listing.csv;
    if (listing.ndjson && strcmp(format, "ndjson") != 0) {
        (void)error_set(&err, ERROR_PERMANENT, "--format '%s': 'csv' or 'ndjson'", format);
        return cli_fail(&err);
    }
    if (listing.csv) {
        puts("id,address,address_hash,channel,category,reason,note,created_at,created_by,"
             "expires_at,released_at,released_by");
    }
    return list(cli, &listing);
}

// ---- add ----

static bool add(Suppress *suppress, Stentor__V1__Suppression **ret, Error *err)
{
    Cli *cli = suppress->cli;
    SuppressReading reading = {
        .tenant = str_from(suppress->tenant),
        .hash_key = master_hash_key(suppress->master),
    };
    SuppressLine line;
    BusOut out;
    int64_t now_us = clock_now_us();
    if (!suppress_defaults(suppress, &reading.defaults, err) ||
        !suppress_address_parse(
            &reading, str_from(args_word(&cli->args, 0)), cli->arena, &line, err)) {
        return false;
    }
    if (line.expires_at_us != 0 && line.expires_at_us <= now_us) {
        return error_set(err, ERROR_PERMANENT, "--expires lies in the past");
    }
    return suppress_event(suppress, &line, now_us, cli->arena, ret, &out, err) &&
           config_replace(&suppress->session, cli->arena, &out, 0, err);
}

static void print_entry(const Cli *cli, const Stentor__V1__Suppression *entry)
{
    if (cli->json) {
        print_json(entry, "", "\n");
    } else {
        print_line(entry, clock_now_us());
    }
}

int cmd_suppress_add(Cli *cli)
{
    Error err = {0};
    Suppress suppress;
    Stentor__V1__Suppression *entry = NULL;
    if (!suppress_open(&suppress, cli, true, &err)) {
        return cli_fail(&err);
    }
    bool ok = add(&suppress, &entry, &err);
    suppress_close(&suppress);
    if (!ok) {
        return cli_fail(&err);
    }
    print_entry(cli, entry);
    return EXIT_DONE;
}

// ---- release ----

enum { RELEASES_MAX = 64 };

// What is to be released: the entry of an id, or all those of an address that are in force.
typedef struct Release {
    const char *id; // NULL: by address
    Arena *arena;
    Stentor__V1__Suppression *found[RELEASES_MAX];
    uint64_t sequences[RELEASES_MAX]; // of their messages
    size_t count;
} Release;

static Stentor__V1__Suppression *copy_entry(const Stentor__V1__Suppression *entry, Arena *arena)
{
    Str packed;
    Error ignored = {0};
    return event_pack(&entry->base, arena, &packed, &ignored)
               ? (Stentor__V1__Suppression *)event_unpack(
                     &stentor__v1__suppression__descriptor, packed, arena, &ignored)
               : NULL;
}

static bool on_candidate(void *ctx, Stentor__V1__Suppression *entry, uint64_t sequence)
{
    Release *release = ctx;
    bool wanted =
        release->id != NULL ? strcmp(entry->id, release->id) == 0 : entry->released_at_us == 0;
    if (wanted) {
        release->found[release->count] = copy_entry(entry, release->arena);
        release->sequences[release->count] = sequence;
        release->count += release->found[release->count] != NULL ? 1 : 0;
    }
    return release->count < (release->id != NULL ? 1 : RELEASES_MAX);
}

static bool release_one(
    Suppress *suppress, Stentor__V1__Suppression *entry, uint64_t sequence, Error *err)
{
    static char who[] = "cli";
    BusOut out;
    if (entry->released_at_us == 0) {
        entry->released_at_us = clock_now_us();
        entry->released_by = who;
        if (!suppression_event(entry, suppress->cli->arena, &out, err) ||
            !config_replace(&suppress->session, suppress->cli->arena, &out, sequence, err)) {
            return false;
        }
    }
    print_entry(suppress->cli, entry);
    return true;
}

static bool release(Suppress *suppress, Release *what, Error *err)
{
    const char *filter = "*.*.*";
    if (what->id == NULL && !make_filter(suppress, &filter, err)) {
        return false;
    }
    bool ok = suppress_each(suppress, filter, on_candidate, what, err);
    for (size_t i = 0; ok && i < what->count; i++) {
        ok = release_one(suppress, what->found[i], what->sequences[i], err);
    }
    return ok;
}

int cmd_suppress_release(Cli *cli)
{
    Error err = {0};
    Suppress suppress;
    bool by_address = args_has(&cli->args, "address");
    Release what = {.id = args_word(&cli->args, 0), .arena = cli->arena};
    if ((what.id != NULL) == by_address ||
        (what.id != NULL && !id_parse(str_from(what.id), "sup_", NULL))) {
        fprintf(stderr, "stentor: give either an id ('sup_...') or --address ADDRESS\n");
        return EXIT_USAGE;
    }
    if (!suppress_open(&suppress, cli, by_address, &err)) {
        return cli_fail(&err);
    }
    bool ok = release(&suppress, &what, &err);
    suppress_close(&suppress);
    if (!ok) {
        return cli_fail(&err);
    }
    if (what.count == 0) {
        fprintf(stderr, "stentor: no such suppression\n");
        return EXIT_NOT_FOUND;
    }
    return EXIT_DONE;
}
