// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/arena.h"
#include "common/base/file.h"
#include "common/codec/seal.h"
#include "common/epochs/epoch_folder.h"

static const uint8_t SUBJECT[16] = "0123456789abcde";

typedef struct Stage {
    char path[64];
    char text[MASTER_KEY_FILE_SIZE]; // of the master key file
    MasterKey *master;
    MasterKey *other; // the same file, in another program
    EpochFolder *folder;
    EpochFolder *reader;
    Arena *arena;
} Stage;

static int set_up(void **state)
{
    Stage *s = calloc(1, sizeof *s);
    snprintf(s->path, sizeof s->path, "/tmp/epochs.XXXXXX");
    assert_non_null(mkdtemp(s->path));
    char random[132];
    master_key_generate(random);
    s->master = master_key_parse(str_from(random), NULL);
    assert_true(master_key_print(s->master, &(MasterKeyChange){0}, s->text, NULL));
    s->other = master_key_parse(str_from(s->text), NULL);
    Error err = {0};
    s->folder = epoch_folder_open(s->path, s->master, &err);
    s->reader = epoch_folder_open(s->path, s->other, &err);
    assert_non_null(s->folder);
    assert_non_null(s->reader);
    s->arena = arena_new(0);
    *state = s;
    return 0;
}

static void empty_folder(const char *path)
{
    char name[400];
    DIR *dir = opendir(path);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        (void)unlink(name);
    }
    closedir(dir);
}

static int tear_down(void **state)
{
    Stage *s = *state;
    epoch_folder_close(s->folder);
    epoch_folder_close(s->reader);
    master_key_free(s->master);
    master_key_free(s->other);
    empty_folder(s->path);
    rmdir(s->path);
    arena_free(s->arena);
    free(s);
    return 0;
}

static EpochInfo make(Stage *s, uint32_t number, bool use)
{
    EpochInfo made;
    Error err = {0};
    assert_true(epoch_folder_make(s->folder, number, 1764000000, &made, &err));
    if (use) {
        assert_true(epoch_folder_use(s->folder, &made, &err));
    }
    return made;
}

static const char *file_of(Stage *s, const EpochInfo *epoch)
{
    char id[KEY_ID_SIZE];
    key_id_print(epoch->id, id);
    return arena_printf(s->arena, "%s/%s.epoch", s->path, id);
}

static void without_a_key_the_master_key_wraps(void **state)
{
    Stage *s = *state;
    uint8_t wrapped[WRAPPED_KEY_LEN];
    assert_null(master_epoch_current(s->master));
    data_key_free(data_key_new(s->master, SUBJECT, 1, wrapped));
    assert_int_equal(wrapped[1], WRAPPED_BY_MASTER);
    assert_null(wrapped_epoch(str_of(wrapped, sizeof wrapped)));
}

static void a_new_key_wraps_only_once_it_is_the_current_one(void **state)
{
    Stage *s = *state;
    uint8_t wrapped[WRAPPED_KEY_LEN];
    EpochInfo first = make(s, 1, false);
    assert_null(master_epoch_current(s->master));
    Error err = {0};
    assert_true(epoch_folder_use(s->folder, &first, &err));
    data_key_free(data_key_new(s->master, SUBJECT, 1, wrapped));
    assert_memory_equal(wrapped_epoch(str_of(wrapped, sizeof wrapped)), first.id, KEY_ID_LEN);
}

static void another_program_learns_of_it_without_a_restart(void **state)
{
    Stage *s = *state;
    Error err = {0};
    uint8_t wrapped[WRAPPED_KEY_LEN];
    EpochInfo first = make(s, 1, true);
    data_key_free(data_key_new(s->master, SUBJECT, 1, wrapped));
    Str bytes = str_of(wrapped, sizeof wrapped);
    assert_null(data_key_unwrap(s->other, SUBJECT, 1, bytes, &err));
    assert_non_null(strstr(err.text, "which is not in STENTOR_EPOCH_KEYS_DIR"));
    assert_true(master_epochs_refresh(s->other, &err));
    DataKey *key = data_key_unwrap(s->other, SUBJECT, 1, bytes, &err);
    assert_non_null(key);
    data_key_free(key);
    assert_memory_equal(master_epoch_current(s->other)->id, first.id, KEY_ID_LEN);
    // Also the second within the clock's tick of the folder.
    EpochInfo second = make(s, 2, true);
    assert_true(master_epochs_refresh(s->other, &err));
    assert_memory_equal(master_epoch_current(s->other)->id, second.id, KEY_ID_LEN);
    assert_int_equal(master_epoch_count(s->other), 2);
}

static void what_a_destroyed_key_has_wrapped_opens_nothing(void **state)
{
    Stage *s = *state;
    Error err = {0};
    uint8_t wrapped[WRAPPED_KEY_LEN];
    uint8_t again[WRAPPED_KEY_LEN];
    EpochInfo first = make(s, 1, true);
    data_key_free(data_key_new(s->master, SUBJECT, 1, wrapped));
    assert_false(epoch_folder_destroy(s->folder, first.id, &err));
    assert_non_null(strstr(err.text, "is the current one"));
    EpochInfo second = make(s, 2, true);
    Str bytes = str_of(wrapped, sizeof wrapped);
    assert_true(data_key_rewrap(s->master, SUBJECT, 1, bytes, again, &err));
    assert_memory_equal(wrapped_epoch(str_of(again, sizeof again)), second.id, KEY_ID_LEN);
    assert_true(epoch_folder_destroy(s->folder, first.id, &err));
    assert_true(epoch_folder_destroy(s->folder, first.id, &err)); // again: done already
    assert_int_not_equal(access(file_of(s, &first), F_OK), 0);
    assert_null(data_key_unwrap(s->master, SUBJECT, 1, bytes, &err));
    assert_true(master_epochs_refresh(s->other, &err));
    assert_null(data_key_unwrap(s->other, SUBJECT, 1, bytes, &err));
    DataKey *key = data_key_unwrap(s->other, SUBJECT, 1, str_of(again, sizeof again), &err);
    assert_non_null(key);
    data_key_free(key);
}

static void a_rotation_of_the_master_key_wraps_the_files_again(void **state)
{
    Stage *s = *state;
    Error err = {0};
    char text[MASTER_KEY_FILE_SIZE];
    char id[KEY_ID_SIZE];
    uint8_t wrapped[WRAPPED_KEY_LEN];
    size_t count = 0;
    (void)make(s, 1, true);
    data_key_free(data_key_new(s->master, SUBJECT, 1, wrapped));
    assert_true(master_key_print(s->master, &(MasterKeyChange){.add = KEY_MASTER}, text, &err));
    MasterKey *both = master_key_parse(str_from(text), &err);
    key_id_print(master_key_info(both, KEY_MASTER, 1)->check, id);
    assert_true(master_key_print(both, &(MasterKeyChange){.first = id}, text, &err));
    master_key_free(both);
    MasterKey *rotated = master_key_parse(str_from(text), &err);
    EpochFolder *folder = epoch_folder_open(s->path, rotated, &err);
    assert_non_null(folder);
    assert_true(epoch_folder_rewrap(folder, &count, &err));
    assert_int_equal(count, 1);
    assert_true(epoch_folder_rewrap(folder, &count, &err));
    assert_int_equal(count, 0);
    // The old master key opens it no more, the new one does.
    assert_null(epoch_folder_open(s->path, s->other, &err));
    assert_non_null(strstr(err.text, "which the master key file does not hold"));
    DataKey *key = data_key_unwrap(rotated, SUBJECT, 1, str_of(wrapped, sizeof wrapped), &err);
    assert_non_null(key);
    data_key_free(key);
    epoch_folder_close(folder);
    master_key_free(rotated);
}

static void put(const char *path, const char *text)
{
    FilePut done;
    FileRights rights = {.mode = 0600, .group = (gid_t)-1};
    assert_true(file_put(path, str_from(text), &rights, true, &done, NULL));
}

static void what_is_wrong_in_the_folder_is_named(void **state)
{
    Stage *s = *state;
    Error err = {0};
    EpochInfo first = make(s, 1, true);
    assert_true(master_epochs_refresh(s->other, &err));
    put(file_of(s, &first), "epoch 1 00000000 1764000000 abcd");
    assert_false(master_epochs_refresh(s->other, &err));
    assert_int_equal(err.kind, ERROR_CONFIG);
    assert_non_null(strstr(err.text, "it is no file of an epoch key"));
    assert_int_equal(master_epoch_count(s->other), 1); // what is held stays
    assert_int_equal(unlink(file_of(s, &first)), 0);
    assert_false(master_epochs_refresh(s->other, &err));
    assert_non_null(strstr(err.text, "'current' names the epoch key"));
    Error gone = {0};
    assert_null(epoch_folder_open("/nonexistent/epochs", s->other, &gone));
    assert_non_null(strstr(gone.text, "/nonexistent/epochs"));
}

// A file under another key's name, or with another number, is not taken.
static void a_file_says_only_what_it_was_made_with(void **state)
{
    Stage *s = *state;
    Error err = {0};
    char text[EPOCH_FILE_SIZE];
    EpochInfo info;
    epoch_key_make(s->master, 7, 1764000000, text, &info);
    Str good = str_from(text);
    assert_true(master_epochs_set(s->master, &good, 1, STR_EMPTY, &err));
    assert_int_equal(master_epoch_info(s->master, 0)->number, 7);
    text[6] = '8'; // "epoch 8 ..."
    assert_false(master_epochs_set(s->master, &good, 1, STR_EMPTY, &err));
    text[6] = '7';
    text[8] = text[8] == '0' ? '1' : '0';
    assert_false(master_epochs_set(s->master, &good, 1, STR_EMPTY, &err));
    assert_int_equal(master_epoch_count(s->master), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_a_key_the_master_key_wraps),
        TEST(a_new_key_wraps_only_once_it_is_the_current_one),
        TEST(another_program_learns_of_it_without_a_restart),
        TEST(what_a_destroyed_key_has_wrapped_opens_nothing),
        TEST(a_rotation_of_the_master_key_wraps_the_files_again),
        TEST(what_is_wrong_in_the_folder_is_named),
        TEST(a_file_says_only_what_it_was_made_with),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
