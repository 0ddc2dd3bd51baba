// SPDX-License-Identifier: Apache-2.0
// config export, import, mend: a copy of CONFIG in a file, back again, and a subject whose last
// entry cannot be read.
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/map.h"
#include "common/config/channel_health.h"
#include "common/config/config_entry.h"
#include "common/session/config_put.h"
#include "services/cli/cli.h"
#include "services/cli/config/config_line.h"
#include "services/cli/config/config_walk.h"
#include "services/cli/noted.h"

enum { LINE_BYTES_MAX = 2 * 1024 * 1024 };

// ---- export ----

typedef struct Export {
    const Cli *cli;
    Arena *arena;
    Buf out;
    ConfigTotal total;
    int64_t bad;
} Export;

// A state of the moment, which no import may bring back.
static bool is_state(Str subject)
{
    return str_starts(subject, STR("cfg." CHANNEL_HEALTH_KIND "."));
}

static bool export_one(void *ctx, const BusMessage *message, const char *reason, Error *err)
{
    Export *export = ctx;
    if (reason != NULL) {
        cli_note(
            export->cli, "not exported: '%.*s': %s (HINT: stentor config mend %.*s)",
            STR_ARG(message->subject), reason, STR_ARG(message->subject));
        export->bad++;
        return true;
    }
    if (is_state(message->subject)) {
        return true;
    }
    ConfigLine line = {
        .subject = message->subject,
        .payload = message->payload,
        .stored_at_us = message->stored_at_us};
    arena_reset(export->arena);
    buf_clear(&export->out);
    config_line_write(&export->out, &line, &export->total, export->arena);
    return fwrite(export->out.ptr, 1, export->out.len, stdout) == export->out.len ||
           error_set(err, ERROR_TRANSIENT, "cannot write to standard output");
}

int cmd_config_export(Cli *cli)
{
    Error err = {0};
    Session session;
    Export export = {.cli = cli, .arena = arena_new(0)};
    if (!session_open(&session, &cli->settings.session, &err)) {
        arena_free(export.arena);
        return cli_fail(cli, &err);
    }
    buf_init(&export.out, LINE_BYTES_MAX);
    bool ok = config_walk(&session, &(ConfigPart){0}, export_one, &export, &err);
    session_close(&session);
    buf_clear(&export.out);
    config_total_write(&export.out, &export.total);
    ok = ok && ((fputs(buf_c(&export.out), stdout) >= 0 && fflush(stdout) == 0) ||
                error_set(&err, ERROR_TRANSIENT, "cannot write to standard output"));
    buf_done(&export.out);
    arena_free(export.arena);
    if (!ok) {
        return cli_fail(cli, &err);
    }
    cli_note(
        cli,
        "%lld entries; hashes of API keys and addresses are among them: keep the file as a secret",
        (long long)export.total.entries);
    return export.bad == 0 ? EXIT_DONE : EXIT_FAILED;
}

// ---- import ----

// What CONFIG has of a subject.
typedef struct There {
    uint8_t sum[SHA256_LEN]; // of the payload
    int64_t stored_at_us;
    uint64_t sequence;
    bool readable;
} There;

typedef struct Import {
    Cli *cli;
    Session *session;
    Map *there;
    ConfigLine *lines;
    size_t count, room;
    int64_t put, same, newer;
} Import;

static bool note_there(void *ctx, const BusMessage *message, const char *reason, Error *err)
{
    (void)err;
    Import *import = ctx;
    There *there = xcalloc(1, sizeof *there);
    sha256(message->payload, there->sum);
    there->stored_at_us = message->stored_at_us;
    there->sequence = message->sequence;
    there->readable = reason == NULL;
    map_put(import->there, message->subject, there);
    return true;
}

static bool check_entry(const ConfigLine *line, Arena *arena, Error *err)
{
    ConfigName name;
    BusMessage message = {
        .subject = line->subject, .payload = line->payload, .event_id = STR("import")};
    return config_entry_check(&message, &name, arena, err) ||
           error_wrap(err, "'%.*s'", STR_ARG(line->subject));
}

static bool read_lines(Import *import, FILE *file, const char *path, Error *err)
{
    ConfigTotal total = {0};
    ConfigLineKind kind = CONFIG_LINE_ENTRY;
    ConfigLine entry;
    char *text = NULL;
    size_t room = 0, number = 0;
    ssize_t len;
    bool ok = true;
    while (ok && kind == CONFIG_LINE_ENTRY && (len = getline(&text, &room, file)) > 0) {
        number++;
        ok = (len <= LINE_BYTES_MAX ||
              error_set(err, ERROR_PERMANENT, "the line is longer than any entry")) &&
             config_line_read(
                 str_of(text, (size_t)len), &total, import->cli->arena, &kind, &entry, err) &&
             (kind == CONFIG_LINE_TOTAL || check_entry(&entry, import->cli->arena, err));
        if (!ok) {
            (void)error_wrap(err, "'%s', line %zu", path, number);
        } else if (kind == CONFIG_LINE_ENTRY) {
            if (import->count == import->room) {
                import->room = import->room > 0 ? 2 * import->room : 256;
                import->lines = xrealloc(import->lines, import->room * sizeof *import->lines);
            }
            import->lines[import->count++] = entry;
        }
    }
    if (ok && (kind != CONFIG_LINE_TOTAL || getline(&text, &room, file) > 0)) {
        ok = error_set(
            err, ERROR_PERMANENT,
            "'%s' does not end with the line that counts its entries: a part is missing", path);
    }
    free(text);
    return ok;
}

// All of the file, before anything is published.
static bool read_file(Import *import, const char *path, Error *err)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (file == NULL) {
        return error_set(err, ERROR_USAGE, "cannot open '%s': %s", path, strerror(errno));
    }
    bool ok = read_lines(import, file, path, err);
    if (file != stdin) {
        (void)fclose(file);
    }
    return ok;
}

static bool is_same(const There *there, const ConfigLine *line)
{
    uint8_t sum[SHA256_LEN];
    sha256(line->payload, sum);
    return there != NULL && there->readable && memcmp(there->sum, sum, SHA256_LEN) == 0;
}

static bool check_newer(Import *import, bool forced, Error *err)
{
    for (size_t i = 0; i < import->count; i++) {
        const There *there = map_get(import->there, import->lines[i].subject);
        // What is there now was stored after the file's entry.
        if (there != NULL && there->readable && !is_same(there, &import->lines[i]) &&
            there->stored_at_us > import->lines[i].stored_at_us) {
            import->newer++;
            cli_note(
                import->cli, "'%.*s' was changed after the export",
                STR_ARG(import->lines[i].subject));
        }
    }
    return import->newer == 0 || forced ||
           error_set(
               err, ERROR_CONFLICT,
               "%lld entries were changed after the export; nothing was imported (HINT: stentor "
               "config import FILE --force overwrites them)",
               (long long)import->newer);
}

// Only in the place of what was looked at.
static bool put_one(Import *import, const ConfigLine *line, const There *there, Error *err)
{
    Arena *arena = import->cli->arena;
    char event_id[EVENT_ID_SIZE];
    const char *when = arena_printf(arena, "import/%lld", (long long)clock_now_us());
    event_id_derive("config", line->subject, str_from(when), event_id);
    BusHeader expected = bus_replaces(there != NULL ? there->sequence : 0, arena);
    BusOut out = {
        .subject = arena_cstr(arena, line->subject),
        .event_id = str_from(event_id),
        .payload = line->payload,
        .headers = &expected,
        .header_count = 1};
    return session_publish(import->session, &out, NULL, err) ||
           error_wrap(err, "'%.*s'", STR_ARG(line->subject));
}

static bool put_all(Import *import, bool dry, Error *err)
{
    for (size_t i = 0; i < import->count; i++) {
        const ConfigLine *line = &import->lines[i];
        const There *there = map_get(import->there, line->subject);
        bool nothing = there == NULL && line->payload.len == 0; // removed, and not there
        if (is_same(there, line) || nothing) {
            import->same++;
        } else if (!dry && !put_one(import, line, there, err)) {
            return false;
        } else {
            import->put++;
        }
    }
    return true;
}

// Counted first: what changes nothing is not noted.
static bool import_all(Import *import, bool dry, Error *err)
{
    if (!put_all(import, true, err)) {
        return false;
    }
    if (dry || import->put == 0) {
        return true;
    }
    const AuditDetail details[] = {
        {"entries", arena_printf(import->cli->arena, "%lld", (long long)import->put)},
        {"overwrites", arena_printf(import->cli->arena, "%lld", (long long)import->newer)}};
    const AuditNote note = {
        .kind = AUDIT_WRITE,
        .action = "config.imported",
        .target = "CONFIG",
        .details = details,
        .detail_count = 2};
    import->put = import->same = 0;
    return cli_audit(import->cli, import->session, &note, err) && put_all(import, false, err);
}

int cmd_config_import(Cli *cli)
{
    Error err = {0};
    Session session;
    if (!session_open(&session, &cli->settings.session, &err)) {
        return cli_fail(cli, &err);
    }
    Import import = {.cli = cli, .session = &session, .there = map_new(free)};
    bool dry = args_has(&cli->args, "dry-run");
    bool ok = read_file(&import, args_word(&cli->args, 0), &err) &&
              config_walk(&session, &(ConfigPart){0}, note_there, &import, &err) &&
              check_newer(&import, dry || args_has(&cli->args, "force"), &err) &&
              import_all(&import, dry, &err);
    session_close(&session);
    map_free(import.there);
    free(import.lines);
    if (!ok) {
        return cli_fail(cli, &err);
    }
    char *counts[] = {
        arena_printf(cli->arena, "%lld", (long long)import.put),
        arena_printf(cli->arena, "%lld", (long long)import.same),
        arena_printf(cli->arena, "%lld", (long long)import.newer)};
    print_pairs(
        cli, (const char *const[]){
                 dry ? "would_import" : "imported", counts[0], "same", counts[1], "changed_since",
                 counts[2], NULL});
    return EXIT_DONE;
}

// ---- mend ----

enum { KEPT_MAX = 64 }; // messages of one subject; CONFIG keeps 8

typedef struct Mend {
    Cli *cli;
    uint64_t bad;    // the last message's sequence when it is no entry; 0: all is well, or nothing
    uint64_t newest; // of those that can be read
    bool found;      // there is a last message
    Str payload;     // of the newest
    uint64_t kept[KEPT_MAX];
    size_t kept_count;
} Mend;

static bool note_message(void *ctx, const BusMessage *message, const char *reason, Error *err)
{
    (void)err;
    Mend *mend = ctx;
    mend->found = true;
    mend->bad = reason != NULL ? message->sequence : 0;
    if (reason == NULL) {
        mend->newest = message->sequence;
        mend->payload = arena_str(mend->cli->arena, message->payload);
    }
    if (mend->kept_count < KEPT_MAX) {
        mend->kept[mend->kept_count++] = message->sequence;
    }
    return true;
}

// What was found before it; nothing: a removal.
static bool put_again(Mend *mend, Session *session, const char *subject, Error *err)
{
    Arena *arena = mend->cli->arena;
    char event_id[EVENT_ID_SIZE];
    const char *what = arena_printf(
        arena, "mend/%llu/%llu", (unsigned long long)mend->bad, (unsigned long long)mend->newest);
    event_id_derive("config", str_from(subject), str_from(what), event_id);
    BusHeader expected = bus_replaces(mend->bad, arena);
    BusOut out = {
        .subject = subject,
        .event_id = str_from(event_id),
        .payload = mend->payload,
        .headers = &expected,
        .header_count = 1};
    return session_publish(session, &out, NULL, err);
}

static bool delete_message(const Mend *mend, Session *session, uint64_t sequence, Error *err)
{
    Str reply;
    const char *query =
        arena_printf(mend->cli->arena, "{\"seq\":%llu}", (unsigned long long)sequence);
    if (!session_request(
            session, "$JS.API.STREAM.MSG.DELETE.CONFIG", str_from(query), mend->cli->arena, &reply,
            err)) {
        return false;
    }
    json_t *root = json_loadb(reply.ptr, reply.len, 0, NULL);
    bool ok = json_is_true(json_object_get(root, "success"));
    json_decref(root);
    return ok || error_set(
                     err, ERROR_PERMANENT, "NATS did not delete a message of CONFIG: %.*s",
                     STR_ARG(str_slice(reply, 0, 160)));
}

// From the oldest on: killed in the middle, the last one is still bad and the next mend goes on.
static bool delete_all(const Mend *mend, Session *session, Error *err)
{
    for (size_t i = 0; i < mend->kept_count; i++) {
        if (!delete_message(mend, session, mend->kept[i], err)) {
            return false;
        }
    }
    return true;
}

static const char *mend_subject(Mend *mend, Session *session, const char *subject, Error *err)
{
    const ConfigPart part = {.filter = subject, .earlier = true};
    if (!config_walk(session, &part, note_message, mend, err)) {
        return NULL;
    }
    if (mend->bad == 0) {
        return mend->found ? "nothing to do: the last entry can be read"
                           : "no entry has this subject";
    }
    bool drop = args_has(&mend->cli->args, "drop");
    if ((mend->newest > 0 || drop) &&
        !cli_audit_write(mend->cli, session, "config.mended", subject, err)) {
        return NULL;
    }
    if (mend->newest > 0) {
        return put_again(mend, session, subject, err) ? "restored as it was before" : NULL;
    }
    if (drop) {
        // Services follow removals; of what is of no kind they know nothing, and it is deleted.
        ConfigName name;
        BusMessage removal = {.subject = str_from(subject), .event_id = STR("mend")};
        bool known = config_entry_check(&removal, &name, mend->cli->arena, NULL);
        bool ok = known ? put_again(mend, session, subject, err) : delete_all(mend, session, err);
        return ok ? "dropped" : NULL;
    }
    error_set(
        err, ERROR_PERMANENT,
        "no earlier entry of this subject can be read (HINT: stentor config mend %s --drop, or "
        "stentor "
        "config "
        "import FILE)",
        subject);
    return NULL;
}

int cmd_config_mend(Cli *cli)
{
    Error err = {0};
    Session session;
    Mend mend = {.cli = cli};
    const char *subject = args_word(&cli->args, 0);
    if (strncmp(subject, "cfg.", 4) != 0 || strpbrk(subject, "*> ") != NULL) {
        error_set(
            &err, ERROR_USAGE, "'%s' is not a subject of CONFIG: cfg.<kind>.<tenant>.<key>",
            subject);
        return cli_fail(cli, &err);
    }
    if (!session_open(&session, &cli->settings.session, &err)) {
        return cli_fail(cli, &err);
    }
    const char *result = mend_subject(&mend, &session, subject, &err);
    session_close(&session);
    if (result == NULL) {
        return cli_fail(cli, &err);
    }
    print_pairs(cli, (const char *const[]){"subject", subject, "result", result, NULL});
    return mend.found ? EXIT_DONE : EXIT_NOT_FOUND;
}
