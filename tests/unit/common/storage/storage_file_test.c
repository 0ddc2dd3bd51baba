// SPDX-License-Identifier: Apache-2.0
#define _XOPEN_SOURCE 700 // nftw
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/storage/storage_folder.h"
#include "common/storage/storage_wait.h"

typedef struct Stage {
    char parent[64];
    char root[80];
    char url[96];
    StorageWait *storage;
    Buf got;
    Error err;
} Stage;

static StorageWait *open_storage(Stage *s)
{
    return storage_wait_open(&(StorageOptions){.url = s->url}, &s->err);
}

static int set_up(void **state)
{
    Stage *s = calloc(1, sizeof *s);
    const char *tmp = getenv("TMPDIR");
    snprintf(s->parent, sizeof s->parent, "%.40s/storage.XXXXXX", tmp == NULL ? "/tmp" : tmp);
    assert_non_null(mkdtemp(s->parent));
    snprintf(s->root, sizeof s->root, "%s/objects", s->parent);
    snprintf(s->url, sizeof s->url, "file://%s", s->root);
    s->storage = open_storage(s);
    assert_non_null(s->storage);
    buf_init(&s->got, 64 * 1024 * 1024);
    *state = s;
    return 0;
}

static int remove_one(const char *path, const struct stat *file, int kind, struct FTW *walk)
{
    (void)file;
    (void)kind;
    (void)walk;
    return remove(path);
}

static int tear_down(void **state)
{
    Stage *s = *state;
    storage_wait_close(s->storage);
    nftw(s->parent, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    buf_done(&s->got);
    free(s);
    return 0;
}

static StoragePut put_of(const char *key, Str bytes)
{
    StoragePut put = {.key = str_from(key), .fd = -1, .bytes = bytes.ptr, .len = bytes.len};
    sha256(bytes, put.sha256);
    return put;
}

static StorageOutcome put_text(Stage *s, const char *key, const char *text)
{
    StoragePut put = put_of(key, str_from(text));
    return storage_wait_put(s->storage, &put, NULL, &s->err);
}

static bool on_piece(void *ctx, const void *bytes, size_t len)
{
    Stage *s = ctx;
    assert_true(buf_append(&s->got, bytes, len));
    return true;
}

static const char *get_text(Stage *s, const char *key, uint64_t offset, uint64_t len)
{
    buf_clear(&s->got);
    StorageOutcome outcome =
        storage_wait_get(s->storage, str_from(key), offset, len, on_piece, s, &s->err);
    return outcome == STORAGE_DONE ? buf_c(&s->got) : storage_outcome_name(outcome);
}

static void on_entry(void *ctx, Str key, const StorageInfo *info)
{
    Stage *s = ctx;
    buf_printf(&s->got, STR_FMT ":%llu ", STR_ARG(key), (unsigned long long)info->bytes);
}

static const char *list(Stage *s, const char *prefix)
{
    buf_clear(&s->got);
    StorageOutcome outcome = storage_wait_list(s->storage, str_from(prefix), on_entry, s, &s->err);
    return outcome == STORAGE_DONE ? buf_c(&s->got) : storage_outcome_name(outcome);
}

// ---- the five verbs ----

static void what_was_put_is_read_whole_and_by_range(void **state)
{
    Stage *s = *state;
    assert_int_equal(put_text(s, "log/STATUS/1-9.seg", "hello world"), STORAGE_DONE);
    assert_string_equal(get_text(s, "log/STATUS/1-9.seg", 0, 0), "hello world");
    assert_string_equal(get_text(s, "log/STATUS/1-9.seg", 6, 0), "world");
    assert_string_equal(get_text(s, "log/STATUS/1-9.seg", 2, 3), "llo");
    assert_string_equal(get_text(s, "log/STATUS/1-9.seg", 9, 100), "ld");
    assert_string_equal(get_text(s, "log/STATUS/1-9.seg", 50, 0), "");
    assert_string_equal(get_text(s, "log/STATUS/1-9.seg", 3, UINT64_MAX), "lo world");
}

static void what_is_not_there_is_absent(void **state)
{
    Stage *s = *state;
    StorageInfo info;
    assert_string_equal(get_text(s, "none", 0, 0), "absent"); // not even the folder
    assert_string_equal(list(s, ""), "");
    assert_int_equal(storage_wait_delete(s->storage, STR("none"), NULL, &s->err), STORAGE_DONE);
    assert_int_equal(put_text(s, "a/b", "x"), STORAGE_DONE);
    assert_string_equal(get_text(s, "a", 0, 0), "absent");     // a folder
    assert_string_equal(get_text(s, "a/b/c", 0, 0), "absent"); // below a file
    assert_int_equal(storage_wait_head(s->storage, STR("a"), &info, &s->err), STORAGE_ABSENT);
    assert_int_equal(storage_wait_delete(s->storage, STR("a"), NULL, &s->err), STORAGE_DONE);
    assert_string_equal(get_text(s, "a/b", 0, 0), "x");
}

static void an_object_from_a_file_and_larger_than_a_piece(void **state)
{
    Stage *s = *state;
    enum { LEN = 700 * 1000 };
    char *bytes = malloc(LEN);
    for (size_t i = 0; i < LEN; i++) {
        bytes[i] = (char)(i * 7 % 251);
    }
    FILE *file = tmpfile();
    assert_int_equal(fwrite(bytes, 1, LEN, file), LEN);
    fflush(file);
    StoragePut put = put_of("big", str_of(bytes, LEN));
    put.bytes = NULL;
    put.fd = fileno(file);
    StorageInfo info;
    assert_int_equal(storage_wait_put(s->storage, &put, &info, &s->err), STORAGE_DONE);
    assert_int_equal(info.bytes, LEN);
    get_text(s, "big", 0, 0);
    assert_int_equal(s->got.len, LEN);
    assert_memory_equal(s->got.ptr, bytes, LEN);
    put.len++; // one more than the file has
    assert_int_equal(storage_wait_put(s->storage, &put, NULL, &s->err), STORAGE_FAILED);
    assert_int_equal(s->err.kind, ERROR_PERMANENT);
    assert_non_null(strstr(s->err.text, "has 700000 bytes, not 700001"));
    fclose(file);
    free(bytes);
}

static void other_bytes_than_those_named_are_refused(void **state)
{
    Stage *s = *state;
    StoragePut put = put_of("k", STR("right"));
    put.bytes = "wrong";
    assert_int_equal(storage_wait_put(s->storage, &put, NULL, &s->err), STORAGE_FAILED);
    assert_int_equal(s->err.kind, ERROR_PERMANENT);
    assert_string_equal(s->err.text, "object 'k': its source has other bytes");
    assert_string_equal(get_text(s, "k", 0, 0), "absent");
}

static void head_tells_length_time_etag_and_whose_it_is(void **state)
{
    Stage *s = *state;
    StorageInfo put_info, info;
    StoragePut put = put_of("a/k", STR("12345"));
    put.installation = "0b6c-42";
    assert_int_equal(storage_wait_put(s->storage, &put, &put_info, &s->err), STORAGE_DONE);
    assert_int_equal(storage_wait_head(s->storage, STR("a/k"), &info, &s->err), STORAGE_DONE);
    assert_int_equal(info.bytes, 5);
    assert_string_equal(info.installation, "0b6c-42");
    assert_string_equal(info.etag, put_info.etag);
    assert_string_equal(info.version, "");
    assert_true(info.modified_us > 1700000000000000);
    // Replaced by one without.
    assert_int_equal(put_text(s, "a/k", "6"), STORAGE_DONE);
    assert_int_equal(storage_wait_head(s->storage, STR("a/k"), &info, &s->err), STORAGE_DONE);
    assert_string_equal(info.installation, "");
    assert_string_not_equal(info.etag, put_info.etag);
}

static void keys_are_listed_in_their_order_by_prefix(void **state)
{
    Stage *s = *state;
    static const char *const KEYS[] = {"a/c", "a-b", "a.b", "a/b/d", "b", "a0", "a/b-c"};
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++) {
        assert_int_equal(put_text(s, KEYS[i], "x"), STORAGE_DONE);
    }
    char foreign[200];
    snprintf(foreign, sizeof foreign, "%s/lost+found", s->root);
    assert_int_equal(mkdir(foreign, 0700), 0);
    assert_string_equal(list(s, ""), "a-b:1 a.b:1 a/b-c:1 a/b/d:1 a/c:1 a0:1 b:1 ");
    assert_string_equal(list(s, "a/"), "a/b-c:1 a/b/d:1 a/c:1 ");
    assert_string_equal(list(s, "a/b"), "a/b-c:1 a/b/d:1 ");
    assert_string_equal(list(s, "a/b/"), "a/b/d:1 ");
    assert_string_equal(list(s, "c"), "");
}

static void a_long_list_comes_whole(void **state)
{
    Stage *s = *state;
    char key[32];
    for (int i = 0; i < 300; i++) { // more than a round has
        snprintf(key, sizeof key, "m/%03d", i);
        assert_int_equal(put_text(s, key, "x"), STORAGE_DONE);
    }
    const char *all = list(s, "m/");
    assert_int_equal(strlen(all), 300 * strlen("m/000:1 "));
    assert_non_null(strstr(all, "m/298:1 m/299:1 "));
}

static void deleting_leaves_no_folder(void **state)
{
    Stage *s = *state;
    char path[200];
    StoragePut put = put_of("a/b/c", STR("x"));
    put.installation = "me";
    assert_int_equal(storage_wait_put(s->storage, &put, NULL, &s->err), STORAGE_DONE);
    assert_int_equal(put_text(s, "a/d", "x"), STORAGE_DONE);
    assert_int_equal(storage_wait_delete(s->storage, STR("a/b/c"), NULL, &s->err), STORAGE_DONE);
    assert_string_equal(list(s, ""), "a/d:1 ");
    snprintf(path, sizeof path, "%s/a/b", s->root);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(storage_wait_delete(s->storage, STR("a/d"), NULL, &s->err), STORAGE_DONE);
    snprintf(path, sizeof path, "%s/a", s->root);
    assert_int_equal(access(path, F_OK), -1);
    snprintf(path, sizeof path, "%s/.owner", s->root);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(access(s->root, F_OK), 0);
}

static void only_its_owner_reads_it(void **state)
{
    Stage *s = *state;
    struct stat file;
    char path[200];
    assert_int_equal(put_text(s, "a/b", "x"), STORAGE_DONE);
    snprintf(path, sizeof path, "%s/a/b", s->root);
    assert_int_equal(stat(path, &file), 0);
    assert_int_equal(file.st_mode & 0777, 0600);
    snprintf(path, sizeof path, "%s/a", s->root);
    assert_int_equal(stat(path, &file), 0);
    assert_int_equal(file.st_mode & 0777, 0700);
}

static void expect_mode(const Stage *s, const char *key, mode_t expected)
{
    struct stat file;
    char path[200];
    snprintf(path, sizeof path, "%s/%s", s->root, key);
    assert_int_equal(stat(path, &file), 0);
    assert_int_equal(file.st_mode & 0777, expected);
}

// What was there before the folder was shared keeps its files' modes; folders let the group in.
static void a_folder_of_mode_2750_is_read_by_its_group(void **state)
{
    Stage *s = *state;
    mode_t was = umask(077);
    assert_int_equal(put_text(s, "a/before", "x"), STORAGE_DONE);
    assert_int_equal(chmod(s->root, 02750), 0);
    StorageOutcome outcome = put_text(s, "a/b/c", "x");
    umask(was);
    assert_int_equal(outcome, STORAGE_DONE);
    expect_mode(s, "a", 0755);
    expect_mode(s, "a/b", 0755);
    expect_mode(s, "a/b/c", 0644);
    expect_mode(s, "a/before", 0600);
    expect_mode(s, ".tmp", 0700);
    assert_int_equal(chmod(s->root, 02755), 0); // others may enter: nothing is shared
    assert_int_equal(put_text(s, "d/e", "x"), STORAGE_DONE);
    expect_mode(s, "d", 0700);
    expect_mode(s, "d/e", 0600);
}

// ---- conditions ----

static void where_others_write_no_link_leads_elsewhere(void **state)
{
    Stage *s = *state;
    StorageInfo info;
    char at[160];
    assert_int_equal(put_text(s, "in/a/k", "inside"), STORAGE_DONE);
    assert_int_equal(put_text(s, "secret/k", "outside"), STORAGE_DONE);
    snprintf(at, sizeof at, "%s/in/link", s->root);
    assert_int_equal(symlink("../secret", at), 0);
    assert_string_equal(get_text(s, "in/link/k", 0, 0), "outside"); // an operator's own link
    storage_wait_close(s->storage);
    snprintf(at, sizeof at, "file://%s/in", s->root);
    s->storage = storage_wait_open(&(StorageOptions){.url = at, .foreign = true}, &s->err);
    assert_non_null(s->storage);
    assert_string_equal(get_text(s, "a/k", 0, 0), "inside");
    assert_string_equal(get_text(s, "link/k", 0, 0), "absent");
    assert_string_equal(get_text(s, "a", 0, 0), "absent");
    assert_int_equal(storage_wait_head(s->storage, STR("a/k"), &info, &s->err), STORAGE_DONE);
    assert_int_equal(info.bytes, 6);
    assert_int_equal(storage_wait_head(s->storage, STR("link/k"), &info, &s->err), STORAGE_ABSENT);
}

static void if_absent_keeps_what_is_there(void **state)
{
    Stage *s = *state;
    StoragePut put = put_of("k", STR("first"));
    put.condition = STORAGE_IF_ABSENT;
    assert_int_equal(storage_wait_put(s->storage, &put, NULL, &s->err), STORAGE_DONE);
    put = put_of("k", STR("second"));
    put.condition = STORAGE_IF_ABSENT;
    assert_int_equal(storage_wait_put(s->storage, &put, NULL, &s->err), STORAGE_PRECONDITION);
    assert_string_equal(get_text(s, "k", 0, 0), "first");
}

static void if_etag_replaces_only_what_was_read(void **state)
{
    Stage *s = *state;
    StorageInfo first, second;
    StoragePut put = put_of("k", STR("1"));
    put.condition = STORAGE_IF_ETAG;
    put.etag = "none";
    assert_int_equal(storage_wait_put(s->storage, &put, NULL, &s->err), STORAGE_PRECONDITION);
    put.condition = STORAGE_ALWAYS;
    assert_int_equal(storage_wait_put(s->storage, &put, &first, &s->err), STORAGE_DONE);
    put.condition = STORAGE_IF_ETAG;
    put.etag = first.etag;
    assert_int_equal(storage_wait_put(s->storage, &put, &second, &s->err), STORAGE_DONE);
    // The same bytes, but not the same object.
    assert_int_equal(storage_wait_put(s->storage, &put, NULL, &s->err), STORAGE_PRECONDITION);
    put.etag = second.etag;
    assert_int_equal(storage_wait_put(s->storage, &put, NULL, &s->err), STORAGE_DONE);
}

enum { WRITERS = 3, ADDITIONS = 20 };

static void add_one(Stage *s)
{
    char text[24];
    StorageInfo info;
    StorageOutcome outcome;
    do {
        buf_clear(&s->got);
        // The ETag first: what is read then is this object or a newer one.
        if (storage_wait_head(s->storage, STR("sum"), &info, &s->err) != STORAGE_DONE ||
            storage_wait_get(s->storage, STR("sum"), 0, 0, on_piece, s, &s->err) != STORAGE_DONE) {
            _exit(2);
        }
        snprintf(text, sizeof text, "%ld", strtol(buf_c(&s->got), NULL, 10) + 1);
        StoragePut put = put_of("sum", str_from(text));
        put.condition = STORAGE_IF_ETAG;
        put.etag = info.etag;
        outcome = storage_wait_put(s->storage, &put, NULL, &s->err);
    } while (outcome == STORAGE_PRECONDITION);
    if (outcome != STORAGE_DONE) {
        _exit(3);
    }
}

static void of_several_processes_each_condition_lets_one_through(void **state)
{
    Stage *s = *state;
    assert_int_equal(put_text(s, "sum", "0"), STORAGE_DONE);
    pid_t writers[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = fork();
        if (writers[i] == 0) {
            s->storage = open_storage(s);
            for (int n = 0; n < ADDITIONS; n++) {
                add_one(s);
            }
            _exit(0);
        }
    }
    for (int i = 0; i < WRITERS; i++) {
        int status;
        assert_int_equal(waitpid(writers[i], &status, 0), writers[i]);
        assert_int_equal(status, 0);
    }
    assert_string_equal(get_text(s, "sum", 0, 0), "60");
}

// ---- what is wrong ----

static void keys_that_could_leave_the_folder_are_refused(void **state)
{
    Stage *s = *state;
    static const char *const KEYS[] = {"",       "/a",     "a/",  "a//b",  "..",
                                       "a/../b", ".tmp/x", "a b", "a%2Fb", "\xc3\xa4"};
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++) {
        error_clear(&s->err);
        assert_int_equal(put_text(s, KEYS[i], "x"), STORAGE_FAILED);
        assert_int_equal(s->err.kind, ERROR_PERMANENT);
        assert_string_equal(get_text(s, KEYS[i], 0, 0), "failed");
    }
    assert_int_equal(access(s->root, F_OK), -1); // nothing was begun
    char key[STORAGE_KEY_MAX + 2];
    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    assert_int_equal(put_text(s, key, "x"), STORAGE_FAILED);
    assert_non_null(strstr(s->err.text, "longer than 900"));
    key[STORAGE_KEY_MAX] = '\0'; // fits, but no file's name is so long
    assert_int_equal(put_text(s, key, "x"), STORAGE_FAILED);
    assert_int_equal(s->err.kind, ERROR_PERMANENT);
}

static void a_key_beside_its_own_folder_is_refused(void **state)
{
    Stage *s = *state;
    assert_int_equal(put_text(s, "a/b", "x"), STORAGE_DONE);
    assert_int_equal(put_text(s, "a", "x"), STORAGE_FAILED);
    assert_int_equal(s->err.kind, ERROR_PERMANENT);
    assert_int_equal(put_text(s, "a/b/c", "x"), STORAGE_FAILED);
    assert_int_equal(s->err.kind, ERROR_PERMANENT);
    assert_string_equal(list(s, ""), "a/b:1 ");
}

static void a_folder_that_cannot_be_made_is_named(void **state)
{
    Stage *s = *state;
    StorageWait *none =
        storage_wait_open(&(StorageOptions){.url = "file:///proc/stentor/x"}, &s->err);
    StoragePut put = put_of("log/k", STR("x"));
    assert_int_equal(storage_wait_put(none, &put, NULL, &s->err), STORAGE_FAILED);
    assert_int_equal(s->err.kind, ERROR_CONFIG);
    assert_non_null(strstr(s->err.text, "object 'log/k': cannot be written: No such file"));
    assert_non_null(strstr(s->err.text, "STENTOR_STORAGE_URL"));
    storage_wait_close(none);
}

static void each_cause_has_its_kind(void **state)
{
    (void)state;
    static const struct {
        int code;
        ErrorKind kind;
    } ROWS[] = {
        {ENOSPC, ERROR_TRANSIENT}, {EDQUOT, ERROR_TRANSIENT}, {EIO, ERROR_TRANSIENT},
        {EMFILE, ERROR_TRANSIENT}, {EROFS, ERROR_CONFIG},     {EACCES, ERROR_CONFIG},
        {EPERM, ERROR_CONFIG},     {EISDIR, ERROR_PERMANENT}, {ENAMETOOLONG, ERROR_PERMANENT},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        Error err;
        errno = ROWS[i].code;
        assert_false(storage_folder_error(STR("a/k"), "cannot be written", &err));
        assert_int_equal(err.kind, ROWS[i].kind);
        assert_non_null(strstr(err.text, "object 'a/k': cannot be written: "));
        assert_non_null(strstr(err.text, strerror(ROWS[i].code)));
    }
}

static void a_full_disk_leaves_nothing(void **state)
{
    Stage *s = *state;
    pid_t child = fork();
    if (child == 0) {
        // The nearest to a full disk that needs no rights: a file may not grow beyond this.
        signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = 3, .rlim_max = 3}) != 0) {
            _exit(9);
        }
        _exit(put_text(s, "k", "12345") == STORAGE_FAILED ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_string_equal(list(s, ""), "");
    char path[200];
    snprintf(path, sizeof path, "rmdir %s/.tmp", s->root);
    assert_int_equal(rmdir(strchr(path, '/')), 0); // nothing of it is left there either
}

static void addresses_that_are_none(void **state)
{
    Stage *s = *state;
    static const char *const URLS[] = {"",       "file://",          "file:///", "file://host/x",
                                       "/tmp/x", "ftp://k:secret@h/"};
    for (size_t i = 0; i < sizeof URLS / sizeof *URLS; i++) {
        error_clear(&s->err);
        assert_null(storage_wait_open(&(StorageOptions){.url = URLS[i]}, &s->err));
        assert_int_equal(s->err.kind, ERROR_CONFIG);
        assert_null(strstr(s->err.text, "secret"));
    }
    assert_null(storage_wait_open(&(StorageOptions){0}, &s->err));
}

// ---- killed ----

#ifdef STENTOR_CRASH_POINTS
// By a process of its own: the point is read from the environment once.
static void killed_at(Stage *s, const char *point, const char *text)
{
    pid_t child = fork();
    if (child == 0) {
        setenv("STENTOR_CRASH_AT", point, 1);
        if (freopen("/dev/null", "w", stderr) != NULL) {
            execl("/proc/self/exe", "storage", s->url, text, (char *)NULL);
        }
        _exit(9);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static int put_and_be_killed(const char *url, const char *text)
{
    StorageWait *storage = storage_wait_open(&(StorageOptions){.url = url}, NULL);
    StoragePut put = put_of("a/k", str_from(text));
    put.condition = STORAGE_IF_ABSENT;
    (void)storage_wait_put(storage, &put, NULL, NULL);
    return 1;
}

static void killed_before_it_has_its_name_nothing_is_there(void **state)
{
    Stage *s = *state;
    killed_at(s, "storage.written", "first");
    assert_string_equal(get_text(s, "a/k", 0, 0), "absent");
    assert_string_equal(list(s, ""), "");
    StoragePut put = put_of("a/k", STR("second"));
    put.condition = STORAGE_IF_ABSENT;
    assert_int_equal(storage_wait_put(s->storage, &put, NULL, &s->err), STORAGE_DONE);
    assert_string_equal(get_text(s, "a/k", 0, 0), "second");
}

static void killed_after_it_has_its_name_it_is_whole(void **state)
{
    Stage *s = *state;
    killed_at(s, "storage.named", "first");
    assert_string_equal(get_text(s, "a/k", 0, 0), "first");
    StoragePut put = put_of("a/k", STR("first"));
    put.condition = STORAGE_IF_ABSENT;
    assert_int_equal(storage_wait_put(s->storage, &put, NULL, &s->err), STORAGE_PRECONDITION);
}
#endif

// ---- on a loop ----

typedef struct Answers {
    Storage *storage;
    int done, cancelled, failed;
    bool within, freed, wrong;
} Answers;

static void on_answer(void *ctx, StorageOutcome outcome, const StorageInfo *info, const Error *err)
{
    (void)info;
    Answers *a = ctx;
    a->wrong |= a->within;
    a->done += outcome == STORAGE_DONE;
    a->failed += outcome == STORAGE_FAILED && err->kind == ERROR_PERMANENT;
    a->cancelled += outcome == STORAGE_FAILED && err->kind == ERROR_CANCELLED;
}

static void on_freed(void *ctx)
{
    ((Answers *)ctx)->freed = true;
}

static void no_answer_comes_from_within_the_call(void **state)
{
    Stage *s = *state;
    uv_loop_t loop;
    uv_loop_init(&loop);
    Answers a = {.within = true};
    a.storage = storage_new(&loop, &(StorageOptions){.url = s->url}, &s->err);
    StoragePut put = put_of("k", STR("x"));
    storage_put(a.storage, &put, on_answer, &a);
    storage_head(a.storage, STR("bad key"), on_answer, &a);
    storage_head(a.storage, STR("bad//key"), on_answer, &a);
    a.within = false;
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(a.done, 1);
    assert_int_equal(a.failed, 2);
    assert_false(a.wrong);
    storage_free(a.storage, on_freed, &a);
    assert_false(a.freed);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(a.freed);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void closing_ends_every_open_call(void **state)
{
    Stage *s = *state;
    uv_loop_t loop;
    uv_loop_init(&loop);
    Answers a = {.freed = false};
    a.storage = storage_new(&loop, &(StorageOptions){.url = s->url}, &s->err);
    char key[16];
    for (int i = 0; i < 20; i++) { // more than there are threads
        snprintf(key, sizeof key, "k%d", i);
        StoragePut put = put_of(key, STR("x"));
        storage_put(a.storage, &put, on_answer, &a);
    }
    storage_free(a.storage, on_freed, &a);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(a.freed);
    assert_int_equal(a.cancelled, 20); // a PUT has two rounds, and none began its second
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_string_equal(list(s, ""), "");
}

int main(int argc, char **argv)
{
#ifdef STENTOR_CRASH_POINTS
    if (argc == 3) {
        return put_and_be_killed(argv[1], argv[2]);
    }
#else
    (void)argc;
    (void)argv;
#endif
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(what_was_put_is_read_whole_and_by_range),
        CASE(what_is_not_there_is_absent),
        CASE(an_object_from_a_file_and_larger_than_a_piece),
        CASE(other_bytes_than_those_named_are_refused),
        CASE(head_tells_length_time_etag_and_whose_it_is),
        CASE(keys_are_listed_in_their_order_by_prefix),
        CASE(a_long_list_comes_whole),
        CASE(deleting_leaves_no_folder),
        CASE(only_its_owner_reads_it),
        CASE(a_folder_of_mode_2750_is_read_by_its_group),
        CASE(where_others_write_no_link_leads_elsewhere),
        CASE(if_absent_keeps_what_is_there),
        CASE(if_etag_replaces_only_what_was_read),
        CASE(of_several_processes_each_condition_lets_one_through),
        CASE(keys_that_could_leave_the_folder_are_refused),
        CASE(a_key_beside_its_own_folder_is_refused),
        CASE(a_folder_that_cannot_be_made_is_named),
        CASE(each_cause_has_its_kind),
        CASE(a_full_disk_leaves_nothing),
        CASE(addresses_that_are_none),
#ifdef STENTOR_CRASH_POINTS
        CASE(killed_before_it_has_its_name_nothing_is_there),
        CASE(killed_after_it_has_its_name_it_is_whole),
#endif
        CASE(no_answer_comes_from_within_the_call),
        CASE(closing_ends_every_open_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
