// SPDX-License-Identifier: Apache-2.0
// A memo and its e-mail in one transaction, with libpq:
//   cc $(pkg-config --cflags libpq) -o memo memo.c $(pkg-config --libs libpq)
//   DATABASE_URL=postgresql://... ./memo DEPARTMENT TITLE RECIPIENT BODY
// Prints the memo's id. On any error nothing of either is kept.
#include <libpq-fe.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static const char insert_memo[] = "INSERT INTO memos (memo_number_prefix, department_code, title)"
                                  " VALUES ('MEMO', $1, $2) RETURNING id";
static const char insert_email[] =
    "INSERT INTO email_outbox (memo_id, event_type, payload, recipient_email, notification_type,"
    " idempotency_key)"
    " VALUES ($1::uuid, 'memo.created',"
    " jsonb_build_object('subject', 'Memo ' || $2::text || ' created', 'body', $3::text),"
    " $4::text, 'MEMO_CREATED', $1::uuid || '-memo.created-' || md5($4::text))";

typedef struct Memo {
    const char *department;
    const char *title;
    const char *recipient;
    const char *body;
} Memo;

/* Runs one statement; true when it did what it should. With ret_text also gives the first field of
 * its row. */
static bool run(
    PGconn *connection, const char *sql, int count, const char *const *values, char *ret_text,
    size_t ret_size)
{
    PGresult *result = PQexecParams(connection, sql, count, NULL, values, NULL, NULL, 0);
    ExecStatusType status = PQresultStatus(result);
    bool good = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
    if (!good)
        fprintf(stderr, "memo: %s", PQerrorMessage(connection));
    else if (ret_text != NULL)
        snprintf(ret_text, ret_size, "%s", PQgetvalue(result, 0, 0));
    PQclear(result);
    return good;
}

/* COMMIT of a transaction that has failed is answered with ROLLBACK, so the inserts' own results
 * decide. */
static bool create_memo(PGconn *connection, const Memo *memo, char *ret_id, size_t id_size)
{
    const char *memo_values[] = {memo->department, memo->title};
    const char *email_values[] = {ret_id, memo->title, memo->body, memo->recipient};
    if (!run(connection, "BEGIN", 0, NULL, NULL, 0))
        return false;
    if (run(connection, insert_memo, 2, memo_values, ret_id, id_size) &&
        run(connection, insert_email, 4, email_values, NULL, 0))
        return run(connection, "COMMIT", 0, NULL, NULL, 0);
    run(connection, "ROLLBACK", 0, NULL, NULL, 0);
    return false;
}

int main(int count, char **words)
{
    const char *url = getenv("DATABASE_URL");
    if (count != 5) {
        fprintf(stderr, "usage: memo DEPARTMENT TITLE RECIPIENT BODY\n");
        return 2;
    }
    Memo memo = {words[1], words[2], words[3], words[4]};
    char id[64] = "";
    PGconn *connection = PQconnectdb(url != NULL ? url : "");
    bool done = PQstatus(connection) == CONNECTION_OK;
    if (!done)
        fprintf(stderr, "memo: %s", PQerrorMessage(connection));
    done = done && create_memo(connection, &memo, id, sizeof id);
    PQfinish(connection);
    if (done)
        printf("%s\n", id);
    return done ? 0 : 1;
}
