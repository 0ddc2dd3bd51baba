// SPDX-License-Identifier: Apache-2.0
// Object storage, tried with an object of its own below "_stentor/": what archiving relies on, and
// in which class the bucket is. Five verbs, a few hundred bytes; what it stored is gone afterwards.
#include <assert.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/service/health/clock_off.h"
#include "common/storage/storage_wait.h"
#include "services/cli/doctor/doctor.h"

#define NAME "storage"
// Of one length, so that a range distinguishes them.
#define FIRST "stentor doctor tries this storage; this object may be deleted"
#define OTHER "STENTOR DOCTOR TRIES THIS STORAGE; THIS OBJECT MAY BE DELETED"

typedef struct Trial {
    Doctor *doctor;
    StorageWait *storage;
    Str key;
    StorageInfo stored;
    bool conditional;
    int64_t off_us;
    Error err;
} Trial;

static bool failed(Trial *trial, const char *what)
{
    error_wrap(&trial->err, "%s", what);
    doctor_say(
        trial->doctor, NAME, CHECK_FAIL,
        arena_cstr(trial->doctor->cli->arena, str_from(trial->err.text)));
    return false;
}

static bool wrong(Trial *trial, const char *text)
{
    doctor_say(trial->doctor, NAME, CHECK_FAIL, text);
    return false;
}

static StorageOutcome put(Trial *trial, Str body, StorageCondition condition, StorageInfo *ret)
{
    StoragePut request = {
        .key = trial->key, .bytes = body.ptr, .len = body.len, .condition = condition};
    sha256(body, request.sha256);
    return storage_wait_put(trial->storage, &request, ret, &trial->err);
}

// ---- one after the other ----

static bool try_put(Trial *trial)
{
    StorageOutcome outcome = put(trial, STR(FIRST), STORAGE_IF_ABSENT, &trial->stored);
    if (outcome == STORAGE_FAILED) {
        return failed(trial, "nothing can be stored");
    }
    return outcome == STORAGE_DONE || wrong(trial, "says that a new object is there already");
}

// A second PUT must not change it. A server that knows no conditions overwrites.
static bool try_condition(Trial *trial)
{
    StorageInfo second = {0};
    StorageOutcome outcome = put(trial, STR(OTHER), STORAGE_IF_ABSENT, &second);
    if (outcome == STORAGE_FAILED) {
        return failed(trial, "a PUT with a condition");
    }
    trial->conditional = outcome == STORAGE_PRECONDITION;
    if (!trial->conditional) { // what was overwritten is a version of its own where there are any
        (void)storage_wait_delete(trial->storage, trial->key, trial->stored.version, &trial->err);
        trial->stored = second;
    }
    return true;
}

static bool on_piece(void *ctx, const void *bytes, size_t len)
{
    return buf_append(ctx, bytes, len);
}

static bool try_get(Trial *trial)
{
    enum { FROM = 8, LEN = 6 };
    Buf body;
    buf_init(&body, sizeof FIRST);
    Str wanted = str_slice(trial->conditional ? STR(FIRST) : STR(OTHER), FROM, FROM + LEN);
    StorageOutcome outcome =
        storage_wait_get(trial->storage, trial->key, FROM, LEN, on_piece, &body, &trial->err);
    bool same = str_eq(buf_view(&body), wanted);
    buf_done(&body);
    if (outcome == STORAGE_FAILED) {
        return failed(trial, "a range cannot be read");
    }
    return (outcome == STORAGE_DONE && same) ||
           wrong(trial, "reads back other bytes than were stored (HINT: use another server)");
}

static bool try_head(Trial *trial)
{
    StorageInfo info;
    StorageOutcome outcome = storage_wait_head(trial->storage, trial->key, &info, &trial->err);
    if (outcome == STORAGE_FAILED) {
        return failed(trial, "HEAD");
    }
    if (outcome != STORAGE_DONE || info.bytes != trial->stored.bytes) {
        return wrong(trial, "has lost what it has just stored (HINT: use another server)");
    }
    trial->off_us = info.modified_us == 0 ? 0 : info.modified_us - clock_now_us();
    return true;
}

typedef struct Seen {
    Str key;
    bool found;
} Seen;

static void on_entry(void *ctx, Str key, const StorageInfo *info)
{
    Seen *seen = ctx;
    (void)info;
    seen->found |= str_eq(key, seen->key);
}

static bool try_list(Trial *trial)
{
    Seen seen = {.key = trial->key};
    StorageOutcome outcome =
        storage_wait_list(trial->storage, STR("_stentor/probe-"), on_entry, &seen, &trial->err);
    if (outcome == STORAGE_FAILED) {
        return failed(trial, "it cannot be listed");
    }
    return seen.found || wrong(trial, "LIST does not show what was just stored");
}

// By its version first: a lock, or a missing right, keeps it, and expiry and erasure could never
// remove anything.
static bool try_delete(Trial *trial)
{
    bool versioned = trial->stored.version[0] != '\0';
    StorageOutcome outcome = storage_wait_delete(
        trial->storage, trial->key, versioned ? trial->stored.version : NULL, &trial->err);
    if (outcome == STORAGE_FAILED) {
        return failed(
            trial, versioned ? "a version cannot be deleted: the bucket is locked, or the key may "
                               "not, and archives would never expire"
                             : "nothing can be deleted");
    }
    StorageInfo info;
    outcome = storage_wait_head(trial->storage, trial->key, &info, &trial->err);
    return outcome == STORAGE_ABSENT || wrong(trial, "what was deleted is still there");
}

// ---- what it comes to ----

// deploy/PRODUCTION.md says what each class is good for.
static const char *class_of(const Trial *trial)
{
    bool looks_first = strstr(trial->doctor->cli->settings.storage.url, "condition=none") != NULL;
    if (looks_first) {
        return "class C: looks before it writes (condition=none), so only one archiver may run";
    }
    if (!trial->conditional) {
        return "class C: knows no conditions and overwrites (HINT: run one archiver only, and add "
               "condition=none to STENTOR_STORAGE_URL)";
    }
    return trial->stored.version[0] != '\0'
               ? "class A: knows conditions, keeps versions and lets them be deleted"
               : "class B: knows conditions, keeps no versions";
}

static void say_class(Trial *trial)
{
    Arena *arena = trial->doctor->cli->arena;
    const char *class = class_of(trial), *clock = "";
    bool off = clock_is_off(trial->off_us);
    if (off) {
        clock = arena_printf(
            arena,
            "; its clock is %lld s off (HINT: synchronise both clocks, with chrony or "
            "systemd-timesyncd)",
            (long long)trial->off_us / 1000000);
    }
    bool fine = str_starts(str_from(class), STR("class C")) == false && !off;
    doctor_say(
        trial->doctor, NAME, fine ? CHECK_OK : CHECK_WARN,
        arena_printf(arena, "%s%s", class, clock));
}

// A bucket that does not answer is not waited for as long as an archiver would.
static const char *impatient(const Cli *cli)
{
    const char *url = cli->settings.storage.url;
    if (!str_starts(str_from(url), STR("s3://"))) {
        return url;
    }
    const char *joint = strchr(url, '?') == NULL ? "?" : "&";
    return arena_printf(cli->arena, "%s%spatience_s=3&timeout_s=5", url, joint);
}

// A folder belongs to the archiver's user, who could not touch what root makes there.
static void act_as_owner(const char *url)
{
    struct stat folder;
    bool is_folder = str_starts(str_from(url), STR("file://")) && stat(url + 7, &folder) == 0;
    if (is_folder && geteuid() == 0 && folder.st_uid != 0) {
        bool done = setegid(folder.st_gid) == 0 && seteuid(folder.st_uid) == 0;
        assert(done);
        (void)done;
    }
}

static void act_as_oneself(void)
{
    bool done = seteuid(getuid()) == 0 && setegid(getgid()) == 0;
    assert(done);
    (void)done;
}

void doctor_storage(Doctor *doctor)
{
    Cli *cli = doctor->cli;
    if (cli->settings.storage.url[0] == '\0') {
        return;
    }
    char id[ID_SIZE];
    id_new("", clock_now_us(), id);
    Trial trial = {
        .doctor = doctor, .key = str_from(arena_printf(cli->arena, "_stentor/probe-%s", id))};
    StorageOptions options = cli->settings.storage;
    options.url = impatient(cli);
    trial.storage = storage_wait_open(&options, &trial.err);
    if (trial.storage == NULL) {
        failed(&trial, "STENTOR_STORAGE_URL");
        return;
    }
    act_as_owner(options.url);
    if (try_put(&trial) && try_condition(&trial) && try_get(&trial) && try_head(&trial) &&
        try_list(&trial) && try_delete(&trial)) {
        say_class(&trial);
    } else if (trial.stored.bytes > 0) { // nothing is left behind, if it can be helped
        (void)storage_wait_delete(
            trial.storage, trial.key, trial.stored.version, &(Error){.text = ""});
    }
    storage_wait_close(trial.storage);
    act_as_oneself();
}
