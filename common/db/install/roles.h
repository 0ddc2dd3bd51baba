// SPDX-License-Identifier: Apache-2.0
// What only a superuser may do for an installation beside the bootstrap (migrate.h): its database,
// and the passwords of its roles. Each step may be repeated and changes nothing then. Blocking: for
// the command line, not for a loop.
#pragma once

#include <libpq-fe.h>

#include "common/base/error.h"

// CREATE DATABASE unless it is there.
bool db_make_database(PGconn *superuser, const char *name, bool *ret_made, Error *err);

typedef enum RolePassword {
    ROLE_PASSWORD_PRESENT, // it is this one already
    ROLE_PASSWORD_SET,
} RolePassword;

// Gives the role this password, which never goes to the server: only what is kept of it does. A
// role that has another one is ERROR_CONFLICT unless `replaces`. ERROR_CONFIG: no such role.
bool db_role_password(
    PGconn *superuser, const char *role, const char *password, bool replaces, RolePassword *ret,
    Error *err);
