// SPDX-License-Identifier: Apache-2.0
// dlq list, dlq show. resend and drop are in operate/dlq_resend.c.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/codec/event.h"
#include "common/domain/event_seal.h"
#include "common/session/key_file.h"
#include "services/cli/operate/dlq_selection.h"
#include "services/cli/operate/dlq_show.h"

enum { LIMIT_MAX = 100000, MATCHES_MAX = 16 };

// ---- list ----

// With a limit the sequences of the newest are kept in a ring, and read again at the end.
typedef struct List {
    const Cli *cli;
    const Selection *selection;
    uint64_t *newest; // NULL: no limit
    int64_t limit;
    uint64_t count;
} List;

static void print_row(const List *list, const Letter *letter, Arena *arena)
{
    if (list->cli->json) {
        print_json_line(letter_row(letter, list->selection->now_us, arena));
    } else {
        letter_print_row(letter, list->selection->now_us, arena);
    }
}

static bool on_list_letters(
    void *ctx, Scan *scan, const Letter *letters, size_t count, Arena *arena)
{
    (void)scan;
    List *list = ctx;
    for (size_t i = 0; i < count; i++) {
        if (list->newest != NULL) {
            list->newest[list->count % (uint64_t)list->limit] = letters[i].sequence;
        } else {
            print_row(list, &letters[i], arena);
        }
        list->count++;
    }
    return false;
}

static bool print_newest(List *list, Session *session, Error *err)
{
    uint64_t limit = (uint64_t)list->limit;
    Arena *arena = arena_new(0);
    bool ok = true;
    for (uint64_t i = list->count > limit ? list->count - limit : 0; ok && i < list->count; i++) {
        Letter letter;
        bool found = false;
        arena_reset(arena);
        ok = letter_fetch(
            session, list->selection, list->newest[i % limit], arena, &letter, &found, err);
        if (ok && found) { // else it was dropped meanwhile
            print_row(list, &letter, arena);
        }
    }
    arena_free(arena);
    return ok;
}

static bool list_letters(List *list, Session *session, Error *err)
{
    if (!list->cli->json) {
        letter_print_head();
    }
    if (!scan_run(session, list->selection, on_list_letters, list, err) ||
        (list->newest != NULL && !print_newest(list, session, err))) {
        return false;
    }
    if (!list->cli->json) {
        bool cut = list->newest != NULL && list->count > (uint64_t)list->limit;
        printf(
            "%" PRIu64 " dead letter%s%s\n", list->count, list->count == 1 ? "" : "s",
            cut ? ", the newest are shown" : "");
    }
    if (list->count == 0) {
        selection_note_none(list->cli, list->selection);
    }
    return true;
}

int cmd_dlq_list(Cli *cli)
{
    Error err = {0};
    Selection selection;
    List list = {.cli = cli, .selection = &selection};
    if (!args_int(&cli->args, "limit", 0, 1, LIMIT_MAX, &list.limit, &err) ||
        !selection_read(cli, &selection, &err)) {
        return cli_fail(cli, &err);
    }
    Session session;
    if (!session_open(&session, &cli->settings.session, &err)) {
        return cli_fail(cli, &err);
    }
    list.newest = list.limit > 0 ? xcalloc((size_t)list.limit, sizeof *list.newest) : NULL;
    bool ok = list_letters(&list, &session, &err);
    session_close(&session);
    free(list.newest);
    return ok ? EXIT_DONE : cli_fail(cli, &err);
}

// ---- show ----

// What opens the events that letters hold; all NULL without a master key file that can be used.
typedef struct Opening {
    MasterKey *master;
    EpochFolder *epochs;
    EventKeys *keys;
    const char *why; // not, when keys is NULL
} Opening;

// A file or folder that cannot be used hides events and nothing else of a letter.
static void opening_begin(Cli *cli, Session *session, Opening *ret)
{
    const Settings *settings = &cli->settings;
    Error err = {0};
    *ret = (Opening){.why = "STENTOR_MASTER_KEY_FILE opens it"};
    if (settings->master_key_file[0] == '\0') {
        return;
    }
    ret->master = keys_open(
        session, settings->master_key_file, settings->epoch_keys_dir, cli->arena, &ret->epochs,
        &err);
    if (ret->master != NULL) {
        ret->keys = event_keys_new(ret->master);
    } else {
        ret->why = arena_cstr(cli->arena, str_from(err.text));
    }
}

static void opening_end(const Opening *opening)
{
    event_keys_free(opening->keys);
    epoch_folder_close(opening->epochs);
    master_key_free(opening->master);
}

// The letter with its event opened, or why it is not.
static void open_letter(const Cli *cli, const Opening *opening, Letter *letter)
{
    Error err = {0};
    if (letter->body == NULL || !event_is_sealed(pb_bytes(letter->body->payload))) {
        return;
    }
    BusMessage message = {
        .subject = str_from(letter->body->subject), .payload = pb_bytes(letter->body->payload)};
    if (opening->keys == NULL) {
        letter->sealed = opening->why;
    } else if (event_open(opening->keys, clock_mono_us(), &message, cli->arena, &err)) {
        Stentor__V1__DeadLetter *body = arena_copy(cli->arena, letter->body, sizeof *body);
        body->payload = pb_data(message.payload);
        letter_set_body(letter, body, cli->arena);
    } else {
        letter->sealed = arena_cstr(cli->arena, str_from(err.text));
    }
}

typedef struct Search {
    Str id; // of an event or a notification
    uint64_t found[MATCHES_MAX];
    size_t count;
} Search;

static bool on_search_letters(
    void *ctx, Scan *scan, const Letter *letters, size_t count, Arena *arena)
{
    (void)scan;
    (void)arena;
    Search *search = ctx;
    for (size_t i = 0; i < count && search->count < MATCHES_MAX; i++) {
        const Stentor__V1__DeadLetter *body = letters[i].body;
        if (body != NULL && (str_eq(str_from(body->meta->event_id), search->id) ||
                             str_eq(str_from(body->meta->causation_id), search->id) ||
                             str_eq(str_from(letters[i].notification_id), search->id))) {
            search->found[search->count++] = letters[i].sequence;
        }
    }
    return false;
}

static bool find_letters(
    Session *session, const Selection *selection, const char *word, Search *ret, Error *err)
{
    int64_t sequence = 0;
    *ret = (Search){.id = str_from(word)};
    if (str_to_i64(ret->id, &sequence) && sequence > 0) {
        ret->found[ret->count++] = (uint64_t)sequence;
        return true;
    }
    return scan_run(session, selection, on_search_letters, ret, err);
}

static bool show_letters(
    Cli *cli, Session *session, const Selection *selection, const Opening *opening,
    size_t *ret_shown, Error *err)
{
    Search search;
    if (!find_letters(session, selection, args_word(&cli->args, 0), &search, err)) {
        return false;
    }
    for (size_t i = 0; i < search.count; i++) {
        Letter letter;
        bool found = false;
        if (!letter_fetch(session, selection, search.found[i], cli->arena, &letter, &found, err)) {
            return false;
        }
        if (!found) {
            continue;
        }
        ++*ret_shown;
        open_letter(cli, opening, &letter);
        if (cli->json) {
            print_json_line(letter_whole(&letter, selection->now_us, cli->arena));
        } else {
            letter_print_whole(&letter, selection->now_us, cli->arena);
        }
    }
    return true;
}

int cmd_dlq_show(Cli *cli)
{
    Error err = {0};
    Selection selection;
    Session session;
    size_t shown = 0;
    if (!selection_read(cli, &selection, &err)) {
        return cli_fail(cli, &err);
    }
    if (!session_open(&session, &cli->settings.session, &err)) {
        return cli_fail(cli, &err);
    }
    Opening opening;
    opening_begin(cli, &session, &opening);
    bool ok = show_letters(cli, &session, &selection, &opening, &shown, &err);
    opening_end(&opening);
    session_close(&session);
    if (!ok) {
        return cli_fail(cli, &err);
    }
    if (shown == 0) {
        bool one = selection.tenant.len > 0;
        return cli_fail_as(
            cli, EXIT_NOT_FOUND, "no dead letter '%s' of %s%s", args_word(&cli->args, 0),
            one ? "tenant " : "any tenant", one ? cli->settings.tenant : "");
    }
    return EXIT_DONE;
}
