// SPDX-License-Identifier: Apache-2.0
// The master key file in the `stentor` command: no command hashes or opens anything with a file
// that is not the installation's.
#pragma once

#include "common/codec/key_register.h"
#include "services/cli/session.h"

// STENTOR_MASTER_KEY_FILE, parsed. The caller frees it.
MasterKey *keys_read_file(Cli *cli, Error *err);
// What CONFIG has registered; an empty register when nothing is.
bool keys_fetch(Session *session, Cli *cli, KeyRegister *ret, Error *err);
bool keys_publish(Session *session, Cli *cli, const KeyRegister *keys, Error *err);
// The file, once it was compared with what CONFIG has registered. NULL: not there, not readable, or
// another installation's.
MasterKey *keys_open(Session *session, Cli *cli, Error *err);
