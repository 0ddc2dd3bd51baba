// SPDX-License-Identifier: Apache-2.0
#include "common/db/errors.h"

#include <string.h>

typedef struct ClassKind {
    const char *class;
    ErrorKind kind;
} ClassKind;

static const ClassKind KINDS[] = {
    {"22", ERROR_PERMANENT}, // bad data
    {"23", ERROR_PERMANENT}, // constraint, also "no partition for this row"
    {"54", ERROR_PERMANENT}, // a limit of the server: index row too large
    {"P0", ERROR_PERMANENT}, // RAISE in one of our functions
    {"28", ERROR_CONFIG},    // role or password
    {"3D", ERROR_CONFIG},    // no such database
    {"3F", ERROR_CONFIG},    // no such schema
    {"42", ERROR_CONFIG},    // no such table or column, missing right, row-level security
};

ErrorKind db_error_kind(const char *sqlstate)
{
    for (size_t i = 0; sqlstate != NULL && i < sizeof KINDS / sizeof KINDS[0]; i++) {
        if (strncmp(sqlstate, KINDS[i].class, 2) == 0) {
            return KINDS[i].kind;
        }
    }
    return ERROR_TRANSIENT;
}

bool db_error_result(const PGresult *res, const char *name, Error *err)
{
    const char *state = PQresultErrorField(res, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY);
    return error_set(
        err, db_error_kind(state), "'%s': %s (%s)", name, text != NULL ? text : "no answer",
        state != NULL ? state : "connection lost");
}

// What a person must mend before the next attempt can succeed.
static const char *hint_for(const char *text)
{
    bool login = strstr(text, "password authentication failed") != NULL ||
                 strstr(text, "no password supplied") != NULL;
    return login ? " (HINT: see STENTOR_DATABASE_URL; 'stentor init servers' sets passwords)" : "";
}

bool db_error_connection(PGconn *pg, const char *what, Error *err)
{
    const char *text = pg != NULL ? PQerrorMessage(pg) : "out of memory";
    int length = (int)strcspn(text, "\n");
    return error_set(err, ERROR_TRANSIENT, "%s: %.*s%s", what, length, text, hint_for(text));
}

bool db_error_refuses_writes(const Error *err)
{
    static const char *const states[] = {"(53100)", "(53200)", "(53000)", "(25006)"};
    size_t len = strlen(err->text);
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        size_t size = strlen(states[i]);
        if (len >= size && strcmp(err->text + len - size, states[i]) == 0) {
            return true;
        }
    }
    return false;
}

bool db_error_is_stale(const PGresult *res)
{
    const char *state = PQresultErrorField(res, PG_DIAG_SQLSTATE);
    return state != NULL && (strcmp(state, "26000") == 0 || strcmp(state, "0A000") == 0);
}
