// SPDX-License-Identifier: Apache-2.0
// Passwords for the configuration of nats-server, as bcrypt hashes: who reads that file does not
// log in with it. The same passwords give the same hashes, so a second run changes no file.
#pragma once

#include "common/bus/topology/accounts.h"

// Replaces every password of the accounts by its hash, in the arena. One of more than 72 bytes,
// where bcrypt ends, stays as it is.
void nats_hash_passwords(Accounts *accounts, Arena *arena);
