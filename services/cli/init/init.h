// SPDX-License-Identifier: Apache-2.0
// init: what an installation needs before its first service starts. First a folder of files, which
// needs no server and then describes everything (init_files.c); then the servers are set up from it
// (init_servers.c). Law: a secret is durable in the folder before any server has it, and is never
// replaced; so a run that was killed anywhere is completed by the next.
#pragma once

#include <sys/types.h>

#include "services/cli/cli.h"

#define INIT_FOLDER "/etc/stentor"
#define INIT_KEEPER "ingest" // the service that does the work on keys

typedef struct InitService {
    const char *name; // of "stentor-ingest": "ingest"
    bool wants_database;
    bool wants_master_key;
    bool wants_epoch_keys;
} InitService;

// Those of the pipeline and order-saga; an outbox-relay belongs to an application.
const InitService *init_services(size_t *ret_count);

const char *init_folder(const Cli *cli);
// One of its own files by its name: FOLDER/name.
const char *init_path(Cli *cli, const char *name);
// Its text without the line break at the end. *ret_there false: there is no such file, or it is
// empty.
bool init_read(Cli *cli, const char *name, Str *ret, bool *ret_there, Error *err);
// The same of a file that must be there, as a C string.
const char *init_text(Cli *cli, const char *name, Error *err);

// ---- the folder of epoch keys (init_epochs.c) ----

// What FOLDER/epoch-keys is to hold: --epoch-keys, else what it holds, else for a new installation
// (one without a master.key) the default; else "none". ERROR_USAGE: --epoch-keys is no path.
bool init_epochs_choose(Cli *cli, const char **ret, Error *err);
// The path that FOLDER/epoch-keys holds; *ret NULL: this installation has no epoch keys.
bool init_epochs_folder(Cli *cli, const char **ret, Error *err);
// Where ingest puts the keys' own dumps: beside the folder of epoch keys.
const char *init_dumps_folder(Cli *cli, const char *epochs);
// Makes that folder and the one of the keys' dumps for ingest, when they are not there. With
// --seen-as it makes none: the programs run on another machine.
bool init_epochs_make(Cli *cli, gid_t readers, Error *err);

bool init_files(Cli *cli, Error *err);
bool init_servers(Cli *cli, Error *err);

// The role or user of a program: "stentor_digest_flusher" of "digest-flusher".
const char *init_role(Cli *cli, const char *name);
// The lines of FOLDER/accounts and the passwords of our own users, as accounts_read takes them.
bool init_accounts_text(Cli *cli, Str *ret, Error *err);
