// SPDX-License-Identifier: Apache-2.0
#include "common/session/key_file.h"

#include "common/base/file.h"
#include "common/bus/topology/topology.h"
#include "common/session/config_get.h"
#include "common/session/config_put.h"

MasterKey *keys_read_file(const char *path, Arena *arena, Error *err)
{
    Str text;
    if (!file_read(path, MASTER_KEY_FILE_MAX, arena, &text, err)) {
        return NULL;
    }
    MasterKey *master = master_key_parse(text, err);
    if (master == NULL) {
        (void)error_wrap(err, "master key file '%s'", path);
    }
    return master;
}

bool keys_fetch(Session *session, Arena *arena, KeyRegister *ret, Error *err)
{
    char subject[SUBJECT_SIZE];
    Str payload = STR_EMPTY;
    uint64_t sequence = 0;
    *ret = (KeyRegister){.count = 0};
    subject_config(subject, KEY_REGISTER_KIND, STR(KEY_REGISTER_TENANT), STR(KEY_REGISTER_KEY));
    return config_get(session, arena, subject, &payload, &sequence, err) &&
           (payload.len == 0 || key_register_read(payload, arena, ret, err));
}

bool keys_publish(Session *session, Arena *arena, const KeyRegister *keys, Error *err)
{
    ConfigEntry entry = {
        .kind = KEY_REGISTER_KIND,
        .tenant = STR(KEY_REGISTER_TENANT),
        .key = STR(KEY_REGISTER_KEY),
        .message = key_register_message(keys, arena),
    };
    return config_put(session, arena, &entry, err);
}

static MasterKey *open_master(Session *session, const char *path, Arena *arena, Error *err)
{
    KeyRegister keys;
    MasterKey *master = keys_read_file(path, arena, err);
    if (master == NULL) {
        return NULL;
    }
    bool ok = keys_fetch(session, arena, &keys, err);
    if (ok && !key_register_check(&keys, master, err)) {
        ok = error_wrap(err, "master key file '%s'", path);
    }
    if (!ok) {
        master_key_free(master);
        return NULL;
    }
    return master;
}

MasterKey *keys_open(
    Session *session, const char *path, const char *folder, Arena *arena, EpochFolder **ret_epochs,
    Error *err)
{
    *ret_epochs = NULL;
    MasterKey *master = open_master(session, path, arena, err);
    if (master == NULL || folder[0] == '\0') {
        return master;
    }
    *ret_epochs = epoch_folder_open(folder, master, err);
    if (*ret_epochs == NULL) {
        (void)error_wrap(err, "STENTOR_EPOCH_KEYS_DIR");
        master_key_free(master);
        return NULL;
    }
    return master;
}
