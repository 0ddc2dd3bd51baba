// SPDX-License-Identifier: Apache-2.0
#include "services/cli/keys.h"

#include "common/bus/topology.h"
#include "services/cli/config_get.h"
#include "services/cli/config_put.h"

MasterKey *keys_read_file(Cli *cli, Error *err)
{
    const char *path = cli->settings.master_key_file;
    Str text;
    if (!cli_need(path, "STENTOR_MASTER_KEY_FILE", err) ||
        !cli_read_file(cli, path, MASTER_KEY_FILE_MAX, &text, err)) {
        return NULL;
    }
    MasterKey *master = master_key_parse(text, err);
    if (master == NULL) {
        (void)error_wrap(err, "master key file '%s'", path);
    }
    return master;
}

bool keys_fetch(Session *session, Cli *cli, KeyRegister *ret, Error *err)
{
    char subject[SUBJECT_SIZE];
    Str payload = STR_EMPTY;
    uint64_t sequence = 0;
    *ret = (KeyRegister){.count = 0};
    subject_config(subject, KEY_REGISTER_KIND, STR(KEY_REGISTER_TENANT), STR(KEY_REGISTER_KEY));
    return config_get(session, cli, subject, &payload, &sequence, err) &&
           (payload.len == 0 || key_register_read(payload, cli->arena, ret, err));
}

bool keys_publish(Session *session, Cli *cli, const KeyRegister *keys, Error *err)
{
    ConfigEntry entry = {
        .kind = KEY_REGISTER_KIND,
        .tenant = STR(KEY_REGISTER_TENANT),
        .key = STR(KEY_REGISTER_KEY),
        .message = key_register_message(keys, cli->arena),
    };
    return config_put(session, cli, &entry, err);
}

MasterKey *keys_open(Session *session, Cli *cli, Error *err)
{
    KeyRegister keys;
    MasterKey *master = keys_read_file(cli, err);
    if (master == NULL) {
        return NULL;
    }
    bool ok = keys_fetch(session, cli, &keys, err);
    if (ok && !key_register_check(&keys, master, err)) {
        ok = error_wrap(err, "master key file '%s'", cli->settings.master_key_file);
    }
    if (!ok) {
        master_key_free(master);
        return NULL;
    }
    return master;
}
