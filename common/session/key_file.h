// SPDX-License-Identifier: Apache-2.0
// The master key file for the length of a session: nothing there hashes or opens anything with a
// file that is not the installation's.
#pragma once

#include "common/codec/key_register.h"
#include "common/epochs/epoch_folder.h"
#include "common/session/session.h"

// The file at `path`, parsed. The caller frees it.
MasterKey *keys_read_file(const char *path, Arena *arena, Error *err);
// What CONFIG has registered; an empty register when nothing is.
bool keys_fetch(Session *session, Arena *arena, KeyRegister *ret, Error *err);
bool keys_publish(Session *session, Arena *arena, const KeyRegister *keys, Error *err);
// The file, once it was compared with what CONFIG has registered, and the epoch keys of `folder`
// (STENTOR_EPOCH_KEYS_DIR; "": none), which wrap data keys. *ret_epochs (NULL without a folder) is
// closed before the master key is freed. NULL: not there, not readable, or another installation's.
MasterKey *keys_open(
    Session *session, const char *path, const char *folder, Arena *arena, EpochFolder **ret_epochs,
    Error *err);
