// SPDX-License-Identifier: Apache-2.0
// links: stentor_storage stentor_codec PkgConfig::jansson
// The five verbs of common/storage by hand: one command a line on standard input, words parted by
// tabs, one JSON answer a line. The storage is that of STENTOR_STORAGE_*.
//   put KEY FILE CONDITION ETAG INSTALLATION CLASS   CONDITION: always, absent, etag; "-": none
//   put-memory ...                                   the same from memory
//   put-other ...                                    announces the hash of other bytes
//   get KEY OFFSET LENGTH     head KEY     list PREFIX     delete KEY VERSION
//   flood PREFIX COUNT END    COUNT puts at once on a loop; the storage is freed when END have
//   ended
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/id.h"
#include "common/storage/storage_wait.h"

enum { LINE_SIZE = 8192, WORDS_MAX = 8, FILE_MAX = 64 << 20, BODY_MAX = 64 << 20 };

typedef struct Command {
    char *words[WORDS_MAX];
    const StorageOptions *options;
    StorageWait *storage;
    json_t *answer;
} Command;

static const char *word(const Command *command, int at)
{
    const char *text = command->words[at];
    return text == NULL || strcmp(text, "-") == 0 ? NULL : text;
}

static void set(const Command *command, const char *name, json_t *value)
{
    json_object_set_new(command->answer, name, value);
}

static void set_outcome(const Command *command, StorageOutcome outcome, const Error *err)
{
    set(command, "outcome", json_string(storage_outcome_name(outcome)));
    if (outcome == STORAGE_FAILED) {
        set(command, "kind", json_string(error_kind_name(err->kind)));
        set(command, "error", json_string(err->text));
    }
}

static void set_info(const Command *command, const StorageInfo *info)
{
    set(command, "bytes", json_integer((json_int_t)info->bytes));
    set(command, "modified_us", json_integer(info->modified_us));
    set(command, "etag", json_string(info->etag));
    set(command, "version", json_string(info->version));
    set(command, "installation", json_string(info->installation));
}

// ---- verbs ----

static void run_put(const Command *command)
{
    struct stat status;
    int fd = open(command->words[2], O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0 || status.st_size > FILE_MAX) {
        fprintf(stderr, "storage_probe: cannot read '%s'\n", command->words[2]);
        exit(2);
    }
    size_t len = (size_t)status.st_size;
    char *bytes = xmalloc(len + 1);
    if (pread(fd, bytes, len, 0) != (ssize_t)len) {
        exit(2);
    }
    bool in_memory = strcmp(command->words[0], "put-memory") == 0;
    bool other = strcmp(command->words[0], "put-other") == 0;
    const char *condition = command->words[3];
    StoragePut put = {
        .key = str_from(command->words[1]),
        .fd = fd,
        .bytes = in_memory ? bytes : NULL,
        .len = len,
        .condition = strcmp(condition, "absent") == 0 ? STORAGE_IF_ABSENT
                     : strcmp(condition, "etag") == 0 ? STORAGE_IF_ETAG
                                                      : STORAGE_ALWAYS,
        .etag = word(command, 4),
        .installation = word(command, 5),
        .storage_class = word(command, 6)};
    sha256(other ? STR("other") : str_of(bytes, len), put.sha256);
    StorageInfo info;
    Error err = {0};
    StorageOutcome outcome = storage_wait_put(command->storage, &put, &info, &err);
    set_outcome(command, outcome, &err);
    if (outcome == STORAGE_DONE) {
        set_info(command, &info);
    }
    free(bytes);
    close(fd);
}

static bool on_piece(void *ctx, const void *bytes, size_t len)
{
    return buf_append(ctx, bytes, len);
}

static void run_get(const Command *command)
{
    Buf body;
    Error err = {0};
    buf_init(&body, BODY_MAX);
    uint64_t offset = strtoull(command->words[2], NULL, 10);
    uint64_t len = strtoull(command->words[3], NULL, 10);
    Str key = str_from(command->words[1]);
    set_outcome(
        command, storage_wait_get(command->storage, key, offset, len, on_piece, &body, &err), &err);
    uint8_t digest[SHA256_LEN];
    char hex[2 * SHA256_LEN + 1];
    sha256(buf_view(&body), digest);
    hex_encode(digest, sizeof digest, hex);
    set(command, "sha256", json_string(hex));
    set(command, "bytes", json_integer((json_int_t)body.len));
    buf_done(&body);
}

static void run_head(const Command *command)
{
    StorageInfo info;
    Error err = {0};
    StorageOutcome outcome =
        storage_wait_head(command->storage, str_from(command->words[1]), &info, &err);
    set_outcome(command, outcome, &err);
    if (outcome == STORAGE_DONE) {
        set_info(command, &info);
    }
}

static void on_entry(void *ctx, Str key, const StorageInfo *info)
{
    json_t *entry = json_pack(
        "{s:s%, s:I, s:s, s:I}", "key", key.ptr, key.len, "bytes", (json_int_t)info->bytes, "etag",
        info->etag, "modified_us", (json_int_t)info->modified_us);
    json_array_append_new(ctx, entry);
}

static void run_list(const Command *command)
{
    json_t *entries = json_array();
    Error err = {0};
    StorageOutcome outcome =
        storage_wait_list(command->storage, str_from(word(command, 1)), on_entry, entries, &err);
    set_outcome(command, outcome, &err);
    set(command, "entries", entries);
}

static void run_delete(const Command *command)
{
    Error err = {0};
    StorageOutcome outcome =
        storage_wait_delete(command->storage, str_from(command->words[1]), word(command, 2), &err);
    set_outcome(command, outcome, &err);
}

// ---- many at once ----

typedef struct Flood {
    Storage *storage;
    long ended, end, outcomes[STORAGE_FAILED + 1], cancelled;
    bool freed;
} Flood;

static void on_flood_freed(void *ctx)
{
    ((Flood *)ctx)->freed = true;
}

static void on_flood_put(
    void *ctx, StorageOutcome outcome, const StorageInfo *info, const Error *err)
{
    Flood *flood = ctx;
    (void)info;
    flood->outcomes[outcome]++;
    flood->cancelled += outcome == STORAGE_FAILED && err->kind == ERROR_CANCELLED;
    if (++flood->ended == flood->end) {
        storage_free(flood->storage, on_flood_freed, flood);
    }
}

static void run_flood(const Command *command)
{
    static const char BODY[] = "one of many";
    uv_loop_t loop;
    Error err = {0};
    Flood flood = {.end = strtol(command->words[3], NULL, 10)};
    uv_loop_init(&loop);
    flood.storage = storage_new(&loop, command->options, &err);
    long count = strtol(command->words[2], NULL, 10);
    for (long i = 0; i < count; i++) {
        char key[STORAGE_KEY_MAX];
        snprintf(key, sizeof key, "%s%05ld", command->words[1], i);
        StoragePut put = {.key = str_from(key), .bytes = BODY, .len = sizeof BODY};
        sha256(str_of(BODY, sizeof BODY), put.sha256);
        storage_put(flood.storage, &put, on_flood_put, &flood);
    }
    if (flood.end == 0) {
        storage_free(flood.storage, on_flood_freed, &flood);
    }
    uv_run(&loop, UV_RUN_DEFAULT); // ends when nothing is open any more
    set(command, "freed", json_boolean(flood.freed));
    set(command, "closed", json_boolean(uv_loop_close(&loop) == 0));
    set(command, "done", json_integer(flood.outcomes[STORAGE_DONE]));
    set(command, "failed", json_integer(flood.outcomes[STORAGE_FAILED]));
    set(command, "cancelled", json_integer(flood.cancelled));
}

static void run(const Command *command)
{
    const char *verb = command->words[0];
    if (strncmp(verb, "put", 3) == 0) {
        run_put(command);
    } else if (strcmp(verb, "get") == 0) {
        run_get(command);
    } else if (strcmp(verb, "head") == 0) {
        run_head(command);
    } else if (strcmp(verb, "list") == 0) {
        run_list(command);
    } else if (strcmp(verb, "delete") == 0) {
        run_delete(command);
    } else if (strcmp(verb, "flood") == 0) {
        run_flood(command);
    } else {
        fprintf(stderr, "storage_probe: no verb '%s'\n", verb);
        exit(2);
    }
}

// ---- lines ----

static void split(char *line, Command *command)
{
    line[strcspn(line, "\n")] = '\0';
    for (int i = 0; i < WORDS_MAX; i++) {
        command->words[i] = line;
        line = line == NULL ? NULL : strchr(line, '\t');
        if (line != NULL) {
            *line++ = '\0';
        }
    }
}

int main(void)
{
    Error err = {0};
    StorageOptions options = {
        .url = getenv("STENTOR_STORAGE_URL"),
        .key_id = getenv("STENTOR_STORAGE_KEY_ID"),
        .secret = getenv("STENTOR_STORAGE_SECRET"),
        .session_token = getenv("STENTOR_STORAGE_SESSION_TOKEN"),
        .vendor = getenv("STENTOR_STORAGE_VENDOR")};
    Command command = {.options = &options, .storage = storage_wait_open(&options, &err)};
    if (command.storage == NULL) {
        fprintf(stderr, "%s: %s\n", error_kind_name(err.kind), err.text);
        return 1;
    }
    char line[LINE_SIZE];
    while (fgets(line, sizeof line, stdin) != NULL) {
        split(line, &command);
        command.answer = json_object();
        run(&command);
        json_dumpf(command.answer, stdout, JSON_COMPACT);
        printf("\n");
        fflush(stdout);
        json_decref(command.answer);
    }
    storage_wait_close(command.storage);
    return 0;
}
