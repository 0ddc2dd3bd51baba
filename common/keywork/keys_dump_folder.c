// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/keywork/keys_dump.h"

enum { PATH_SIZE = 4096, NAME_LEN = 26, TIME_SIZE = 32 }; // "keys-20261123T151030Z.dump"

static const int64_t SECOND_US = 1000000;

void keys_dump_name(int64_t taken_us, char out[KEYS_DUMP_NAME_SIZE])
{
    char t[CLOCK_RFC3339_SIZE]; // 2026-11-23T15:10:30.000000Z
    clock_format(taken_us, t);
    (void)snprintf(
        out, KEYS_DUMP_NAME_SIZE, "keys-%.4s%.2s%.2sT%.2s%.2s%.2sZ.dump", t, t + 5, t + 8, t + 11,
        t + 14, t + 17);
}

int64_t keys_dump_time(Str name)
{
    char back[KEYS_DUMP_NAME_SIZE];
    char text[TIME_SIZE];
    int64_t at_us = 0;
    if (name.len != NAME_LEN || !str_starts(name, STR("keys-")) || !str_ends(name, STR(".dump"))) {
        return 0;
    }
    const char *d = name.ptr + 5;
    (void)snprintf(
        text, sizeof text, "%.4s-%.2s-%.2sT%.2s:%.2s:%.2sZ", d, d + 4, d + 6, d + 9, d + 11,
        d + 13);
    if (!clock_parse(str_from(text), &at_us)) {
        return 0;
    }
    keys_dump_name(at_us, back);
    return str_eq(name, str_from(back)) ? at_us : 0;
}

static DIR *open_folder(const char *folder, Error *err)
{
    DIR *dir = opendir(folder);
    if (dir == NULL) {
        error_set(err, ERROR_CONFIG, "cannot read '%s': %s", folder, strerror(errno));
    }
    return dir;
}

bool keys_dump_newest(const char *folder, int64_t *ret_us, Error *err)
{
    DIR *dir = open_folder(folder, err);
    if (dir == NULL) {
        return false;
    }
    *ret_us = 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        int64_t taken_us = keys_dump_time(str_from(entry->d_name));
        *ret_us = taken_us > *ret_us ? taken_us : *ret_us;
    }
    closedir(dir);
    return true;
}

bool keys_dump_trim(const char *folder, int64_t before_us, Error *err)
{
    int64_t newest_us = 0;
    DIR *dir = keys_dump_newest(folder, &newest_us, err) ? open_folder(folder, err) : NULL;
    if (dir == NULL) {
        return false;
    }
    before_us = before_us / SECOND_US * SECOND_US;
    bool ok = true;
    for (struct dirent *entry; ok && (entry = readdir(dir)) != NULL;) {
        char path[PATH_SIZE];
        int64_t taken_us = keys_dump_time(str_from(entry->d_name));
        if (taken_us > 0 && taken_us < before_us && taken_us < newest_us) {
            (void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
            ok = unlink(path) == 0 || errno == ENOENT ||
                 error_set(err, ERROR_CONFIG, "cannot remove '%s': %s", path, strerror(errno));
        }
    }
    closedir(dir);
    return ok;
}
