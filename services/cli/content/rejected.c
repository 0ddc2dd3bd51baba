// SPDX-License-Identifier: Apache-2.0
// inbound rejected: callbacks that were refused, from INBOUND and its segments. They hold no
// content, so that nothing is opened.
#include <string.h>

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/codec/event.h"
#include "services/cli/content/content_cli.h"
#include "stentor/v1/inbound.pb-c.h"

enum { LIMIT = 100, LIMIT_MAX = 1000, HEX_SIZE = 65 };

static const int64_t default_past_us = INT64_C(7) * 86400 * 1000000;

typedef struct Listing {
    Cli *cli;
    const char *tenant, *vendor; // NULL: of all
    Arena *scratch;
    int64_t limit, printed;
    bool more;
} Listing;

static bool is_wanted(const Listing *listing, const Stentor__V1__InboundCallback *callback)
{
    return callback->meta != NULL && callback->rejected[0] != '\0' &&
           (listing->tenant == NULL || strcmp(listing->tenant, callback->meta->tenant) == 0) &&
           (listing->vendor == NULL || strcmp(listing->vendor, callback->vendor) == 0);
}

static void print_one(const Listing *listing, const Stentor__V1__InboundCallback *callback)
{
    char at[CLOCK_RFC3339_SIZE];
    char hex[HEX_SIZE] = "-";
    clock_format(callback->received_at_us, at);
    if (callback->body_hash.len == (HEX_SIZE - 1) / 2) {
        hex_encode(callback->body_hash.data, callback->body_hash.len, hex);
    }
    if (listing->cli->json) {
        print_json_line(json_pack(
            "{s:s, s:s, s:s, s:s, s:s, s:I}", "received_at", at, "tenant", callback->meta->tenant,
            "vendor", callback->vendor, "reason", callback->rejected, "body_sha256", hex,
            "body_bytes", (json_int_t)callback->body_bytes));
        return;
    }
    printf(
        "%s  %-20s  %-10s  %-13s  %7u  %s\n", at, callback->meta->tenant, callback->vendor,
        callback->rejected, callback->body_bytes, hex);
}

static bool on_message(void *ctx, const BusMessage *message)
{
    Listing *listing = ctx;
    Error ignored;
    arena_reset(listing->scratch);
    const Stentor__V1__InboundCallback *callback = (const void *)event_unpack(
        &stentor__v1__inbound_callback__descriptor, message->payload, listing->scratch, &ignored);
    if (callback == NULL || !is_wanted(listing, callback)) {
        return true;
    }
    if (listing->printed == listing->limit) {
        listing->more = true;
        return false;
    }
    if (listing->printed == 0 && !listing->cli->json) {
        printf(
            "%-27s  %-20s  %-10s  %-13s  %7s  %s\n", "RECEIVED", "TENANT", "VENDOR", "REASON",
            "BYTES", "SHA-256 OF THE BODY");
    }
    print_one(listing, callback);
    listing->printed++;
    return true;
}

int cmd_inbound_rejected(Cli *cli)
{
    Error err = {0};
    ContentLinks links = {0};
    int64_t now_us = clock_now_us();
    ContentWalk walk = {
        .stream = "INBOUND", .from_us = now_us - default_past_us, .each = on_message};
    const char *tenant = args_flag(&cli->args, "tenant");
    Listing listing = {
        .cli = cli,
        .tenant = tenant != NULL                    ? tenant
                  : cli->settings.tenant[0] != '\0' ? cli->settings.tenant
                                                    : NULL,
        .vendor = args_flag(&cli->args, "vendor"),
        .limit = LIMIT,
        .scratch = arena_new(0)};
    walk.ctx = &listing;
    bool ok = args_time(&cli->args, "since", TIME_BEFORE_NOW, now_us, &walk.from_us, &err) &&
              args_time(&cli->args, "until", TIME_BEFORE_NOW, now_us, &walk.to_us, &err) &&
              args_int(&cli->args, "limit", LIMIT, 1, LIMIT_MAX, &listing.limit, &err) &&
              content_links_open(cli, &links, &err) && content_walk(&links.session, &walk, &err);
    content_links_close(&links);
    arena_free(listing.scratch);
    if (!ok) {
        return cli_fail(cli, &err);
    }
    if (listing.printed == 0) {
        cli_note_empty(cli, "refused callbacks");
    }
    if (listing.more) {
        cli_note(cli, "there are more (HINT: --limit, --since)");
    }
    return EXIT_DONE;
}
