// SPDX-License-Identifier: Apache-2.0
// links: stentor_parquet
// What Parquet files cost: rows a second of CPU, written and read back (with the digest of every
// row), bytes a row, and what an id costs to find. Notifications and attempts of a synthetic month:
// random ids, hashes and sealed addresses, times and words as they come.
//   tests/bench/archive builds and runs it: bench_parquet ROWS FOLDER
// A JSON list of {"name", "value", "unit"}, as tests/bench/run --json writes. The file of the
// notifications is left in FOLDER.
#define _DEFAULT_SOURCE // getrusage
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/arena.h"
#include "common/base/clock.h"
#include "common/parquet/parquet_reader.h"
#include "common/parquet/parquet_writer.h"

enum { BATCH = 256, TEXT = 1024, MONTH_S = 31 * 86400, FINDS = 200 };

// clang-format off
#define ID(n) {.name = n, .type = PARQUET_STRING}
#define TEXT_OR_NULL(n) {.name = n, .type = PARQUET_STRING, .optional = true}
#define WORD(n) {.name = n, .type = PARQUET_STRING, .encoding = PARQUET_DICTIONARY, .optional = true}
#define TIME(n) {.name = n, .type = PARQUET_I64, .logical = PARQUET_TIME_US, .encoding = PARQUET_DELTA, .optional = true}
#define RANDOM(n) {.name = n, .type = PARQUET_BYTES, .optional = true, .uncompressed = true, .no_statistics = true}

static const ParquetColumn notifications[] = {
    {.name = "created_at", .type = PARQUET_I64, .logical = PARQUET_TIME_US, .encoding = PARQUET_DELTA, .sorted = true},
    {.name = "id", .type = PARQUET_STRING, .bloom = true, .sorted = true},
    WORD("tenant_id"), WORD("channel"), WORD("category"), WORD("priority"), WORD("status"),
    {.name = "status_rank", .type = PARQUET_I32, .logical = PARQUET_I16},
    WORD("reason_code"), TEXT_OR_NULL("reason"), WORD("template"), WORD("template_version"), WORD("locale"),
    {.name = "recipient_id", .type = PARQUET_STRING, .optional = true, .bloom = true},
    {.name = "address_hash", .type = PARQUET_BYTES, .optional = true, .bloom = true, .uncompressed = true, .no_statistics = true},
    RANDOM("address"), TEXT_OR_NULL("correlation_id"), TEXT_OR_NULL("source_event_id"), RANDOM("content_checksum"),
    TIME("scheduled_for"), TIME("expires_at"), TIME("queued_at"), TIME("scheduled_at"), TIME("rendered_at"), TIME("sent_at"),
    TIME("delivered_at"), TIME("opened_at"), TIME("clicked_at"), TIME("ended_at"), WORD("batch_id"),
};
static const ParquetColumn attempts[] = {
    {.name = "created_at", .type = PARQUET_I64, .logical = PARQUET_TIME_US, .encoding = PARQUET_DELTA, .sorted = true},
    {.name = "notification_id", .type = PARQUET_STRING, .bloom = true, .sorted = true},
    {.name = "attempt_number", .type = PARQUET_I32, .logical = PARQUET_I16},
    ID("id"), WORD("tenant_id"), WORD("channel"), WORD("vendor"), TEXT_OR_NULL("vendor_message_id"), WORD("outcome"),
    WORD("code"), WORD("enhanced_code"), WORD("reply"), TIME("started_at"), TIME("finished_at"),
    {.name = "was_unknown", .type = PARQUET_BOOL},
};
// clang-format on
enum {
    NOTIFICATION_COLUMNS = sizeof notifications / sizeof notifications[0],
    ATTEMPT_COLUMNS = sizeof attempts / sizeof attempts[0],
    COLUMNS_MAX = NOTIFICATION_COLUMNS,
};

typedef struct Row {
    char text[TEXT];
    size_t used;
    ParquetValue values[COLUMNS_MAX];
    size_t count;
} Row;

typedef struct Month {
    uint64_t random;
    uint64_t rows;
    uint64_t at; // the row at hand
} Month;

typedef void (*MakeRow)(Month *month, Row *row);

static uint64_t next_random(Month *month)
{
    month->random ^= month->random << 13;
    month->random ^= month->random >> 7;
    month->random ^= month->random << 17;
    return month->random;
}

static void put(Row *row, ParquetValue value)
{
    row->values[row->count++] = value;
}

static void put_null(Row *row)
{
    put(row, (ParquetValue){.null = true});
}

static void put_word(Row *row, const char *const *words, uint64_t i)
{
    put(row, (ParquetValue){.bytes = str_from(words[i])});
}

static void put_number(Row *row, int64_t number)
{
    put(row, (ParquetValue){.number = number});
}

static void put_time(Row *row, bool there, int64_t at_us)
{
    put(row, (ParquetValue){.null = !there, .number = at_us});
}

static void put_random(Month *month, Row *row, size_t len)
{
    char *at = row->text + row->used;
    for (size_t i = 0; i < len; i++) {
        at[i] = (char)(uint8_t)(next_random(month) >> 24);
    }
    row->used += len;
    put(row, (ParquetValue){.bytes = str_of(at, len)});
}

// `fixed`, then `len` random characters of base32.
static void put_id(Month *month, Row *row, const char *fixed, size_t len)
{
    static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    char *at = row->text + row->used;
    size_t n = strlen(fixed);
    memcpy(at, fixed, n);
    for (size_t i = 0; i < len; i++) {
        at[n++] = digits[next_random(month) >> 20 & 31];
    }
    row->used += n;
    put(row, (ParquetValue){.bytes = str_of(at, n)});
}

static int64_t created_at(const Month *month)
{
    double share = (double)month->at / (double)month->rows;
    return INT64_C(1790812800000000) + (int64_t)(share * MONTH_S * 1e6);
}

// A ULID's first ten characters are its milliseconds.
static void put_ulid(Month *month, Row *row, const char *prefix)
{
    static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    char fixed[20];
    uint64_t ms = (uint64_t)created_at(month) / 1000;
    size_t n = strlen(prefix);
    memcpy(fixed, prefix, n);
    for (size_t i = 0; i < 10; i++) {
        fixed[n + i] = digits[ms >> 5 * (9 - i) & 31];
    }
    fixed[n + 10] = 'R';
    fixed[n + 11] = '\0';
    put_id(month, row, fixed, 15);
}

static void put_status(Month *month, Row *row)
{
    static const char *const statuses[] = {"delivered", "opened", "clicked", "bounced", "sent"};
    static const char *const reasons[] = {"mailbox_full", "no_such_user", "blocked"};
    uint64_t dice = next_random(month) % 100;
    uint64_t status = dice < 70 ? 0 : dice < 88 ? 1 : dice < 92 ? 2 : dice < 95 ? 3 : 4;
    put_word(row, statuses, status);
    put_number(row, (int64_t)status + 5);
    if (status == 3) {
        put_word(row, reasons, next_random(month) % 3);
        put(row, (ParquetValue){.bytes = STR("550 5.1.1 the recipient's mailbox does not exist")});
    } else {
        put_null(row);
        put_null(row);
    }
}

static void put_times(Month *month, Row *row, int64_t at_us)
{
    uint64_t dice = next_random(month) % 100;
    int64_t step = 1000 + (int64_t)(next_random(month) % 50000);
    put_time(row, dice < 3, at_us + 3600000000);
    put_time(row, dice < 5, at_us + 86400000000);
    put_time(row, true, at_us + step / 8);
    put_time(row, dice < 3, at_us + step / 4);
    put_time(row, true, at_us + step);
    put_time(row, true, at_us + 2 * step + (int64_t)(next_random(month) % 100000));
    put_time(row, dice < 92, at_us + 3 * step + (int64_t)(next_random(month) % 5000000));
    put_time(row, dice < 22, at_us + (int64_t)(next_random(month) % 86400000000));
    put_time(row, dice < 4, at_us + (int64_t)(next_random(month) % 86400000000));
    put_time(row, dice > 96, at_us + 5 * step);
}

static const char *const templates[] = {
    "order-confirmation",   "password-reset", "invoice",        "shipping-update", "one-time-code",
    "appointment-reminder", "welcome",        "payment-failed", "statement-ready", "survey"};
static const char *const channels[] = {"email", "sms", "push", "inapp"};

static void make_notification(Month *month, Row *row)
{
    static const char *const tenants[] = {"acme-shop"};
    static const char *const categories[] = {"transactional", "operational", "security", "billing"};
    static const char *const priorities[] = {"normal", "high", "low", "critical"};
    static const char *const versions[] = {"1", "2", "3", "4", "5", "6", "7"};
    static const char *const locales[] = {"en-GB", "de-DE", "fr-FR", "es-ES", "ja-JP"};
    int64_t at_us = created_at(month);
    put_number(row, at_us);
    put_ulid(month, row, "ntf_");
    put_word(row, tenants, 0);
    uint64_t dice = next_random(month);
    put_word(row, channels, dice % 16 < 12 ? 0 : dice % 4);
    put_word(row, categories, dice >> 8 & 3);
    put_word(row, priorities, (dice >> 16 & 7) < 5 ? 0 : dice >> 16 & 3);
    put_status(month, row);
    put_word(row, templates, dice >> 24 & 7);
    put_word(row, versions, (dice >> 32) % 7);
    put_word(row, locales, (dice >> 40) % 5);
    put_id(month, row, "rcp_01JB", 22);
    put_random(month, row, 32);
    put_random(month, row, 85);
    put_id(month, row, "", 22);
    put_id(month, row, "evt-", 22);
    put_random(month, row, 31);
    put_times(month, row, at_us);
    put_null(row);
}

static void make_attempt(Month *month, Row *row)
{
    static const char *const tenants[] = {"acme-shop"}, *const vendors[] = {
                                                            "smtp", "ses", "twilio"};
    static const char *const outcomes[] = {"delivered", "accepted", "bounce", "rejected_retryable"};
    static const char *const codes[] = {"250", "550", "451"}, *const more[] = {"2.0.0", "5.1.1"};
    int64_t at_us = created_at(month);
    uint64_t dice = next_random(month), bad = dice % 100 < 4;
    int64_t step = 1000 + (int64_t)(next_random(month) % 150000);
    put_number(row, at_us);
    put_ulid(month, row, "ntf_");
    put_number(row, 1 + (int64_t)bad);
    put_ulid(month, row, "dat_");
    put_word(row, tenants, 0);
    put_word(row, channels, dice % 16 < 12 ? 0 : dice % 4);
    put_word(row, vendors, dice >> 8 & 1);
    put_id(month, row, "", 12);
    put_word(row, outcomes, bad ? 2 : dice >> 16 & 1);
    put_word(row, codes, bad);
    put_word(row, more, bad);
    put_null(row);
    put_time(row, true, at_us + step);
    put_time(row, true, at_us + step + 20000 + (int64_t)(next_random(month) % 100000));
    put_number(row, dice % 1000 == 0);
}

// ---- files ----

static bool to_file(void *ctx, const void *bytes, size_t len)
{
    return fwrite(bytes, 1, len, ctx) == len;
}

static bool from_file(void *ctx, uint64_t offset, void *into, size_t len, Error *err)
{
    ssize_t got = pread(*(int *)ctx, into, len, (off_t)offset);
    return got == (ssize_t)len || error_set(err, ERROR_TRANSIENT, "pread");
}

static void must(bool ok, const Error *err)
{
    if (!ok) {
        fprintf(stderr, "bench_parquet: %s\n", err->text);
        exit(1);
    }
}

static void print(const char *name, double value, const char *unit)
{
    static bool more;
    printf(
        "%s{\"name\": \"%s\", \"value\": %.6g, \"unit\": \"%s\"}", more ? ",\n" : "[", name, value,
        unit);
    more = true;
}

typedef struct Table {
    const ParquetColumn *columns;
    size_t count;
    MakeRow make;
} Table;

// The CPU time of writing alone, rows made before; the file's bytes.
static int64_t write_table(
    const Table *table, uint64_t rows, const char *path, ParquetTotals *ret, uint64_t *ret_bytes)
{
    static Row batch[BATCH];
    Month month = {.random = UINT64_C(88172645463325252), .rows = rows};
    FILE *file = fopen(path, "wb");
    Error err = {0};
    int64_t took_us = 0;
    must(file != NULL || error_set(&err, ERROR_CONFIG, "%s cannot be written", path), &err);
    ParquetWriter *writer = parquet_writer_new(table->columns, table->count, to_file, file);
    while (month.at < rows) {
        size_t n = 0;
        for (; n < BATCH && month.at < rows; n++, month.at++) {
            batch[n].used = batch[n].count = 0;
            table->make(&month, &batch[n]);
        }
        int64_t from_us = clock_thread_cpu_us();
        for (size_t i = 0; i < n; i++) {
            must(parquet_writer_row(writer, batch[i].values, &err), &err);
        }
        took_us += clock_thread_cpu_us() - from_us;
    }
    int64_t from_us = clock_thread_cpu_us();
    must(parquet_writer_finish(writer, NULL, 0, ret, &err), &err);
    took_us += clock_thread_cpu_us() - from_us;
    *ret_bytes = parquet_writer_bytes(writer);
    parquet_writer_free(writer);
    fclose(file);
    return took_us;
}

static ParquetReader *open_table(const char *path, int *fd)
{
    struct stat info;
    Error err = {0};
    *fd = open(path, O_RDONLY | O_CLOEXEC);
    must((*fd >= 0 && fstat(*fd, &info) == 0) || error_set(&err, ERROR_CONFIG, "%s", path), &err);
    ParquetReader *reader = parquet_reader_open(from_file, fd, (uint64_t)info.st_size, &err);
    must(reader != NULL, &err);
    return reader;
}

static int64_t read_table(const char *path, const ParquetTotals *written)
{
    static ParquetValue values[COLUMNS_MAX];
    Error err = {0};
    bool end = false;
    int fd;
    int64_t from_us = clock_thread_cpu_us();
    ParquetReader *reader = open_table(path, &fd);
    while (!end) {
        must(parquet_reader_next(reader, values, &end, &err), &err);
    }
    ParquetTotals totals = parquet_reader_totals(reader);
    must(
        parquet_totals_equal(&totals, written) || error_set(&err, ERROR_PERMANENT, "totals"), &err);
    parquet_reader_free(reader);
    close(fd);
    return clock_thread_cpu_us() - from_us;
}

static void measure(const Table *table, const char *name, uint64_t rows, const char *path)
{
    char text[64];
    ParquetTotals totals;
    uint64_t bytes;
    int64_t written_us = write_table(table, rows, path, &totals, &bytes);
    int64_t read_us = read_table(path, &totals);
    snprintf(text, sizeof text, "parquet_rows_per_s%s", name);
    print(text, (double)rows * 1e6 / (double)written_us, "rows/s");
    snprintf(text, sizeof text, "parquet_read_rows_per_s%s", name);
    print(text, (double)rows * 1e6 / (double)read_us, "rows/s");
    snprintf(
        text, sizeof text, "parquet_bytes_per_%s", name[0] != '\0' ? "attempt" : "notification");
    print(text, (double)bytes / (double)rows, "B");
}

// ---- an id ----

// Ids spread over the file, each by a reader that is opened for it.
static void find_ids(const char *path, uint64_t rows)
{
    static char ids[FINDS][32];
    static const char *const names[] = {"id"};
    ParquetValue values[COLUMNS_MAX];
    Error err = {0};
    int fd;
    bool end = false;
    ParquetReader *reader = open_table(path, &fd);
    must(parquet_reader_want(reader, names, 1, &err), &err);
    size_t kept = 0;
    for (uint64_t i = 0; !end && kept < FINDS; i++) {
        must(parquet_reader_next(reader, values, &end, &err), &err);
        if (!end && i % (rows / FINDS) == 0) {
            str_to_c(values[0].bytes, ids[kept++], sizeof ids[0]);
        }
    }
    size_t groups = parquet_reader_groups(reader);
    parquet_reader_free(reader);
    close(fd);
    int64_t from_us = clock_thread_cpu_us();
    for (size_t i = 0; i < kept; i++) {
        reader = open_table(path, &fd);
        must(parquet_reader_find(reader, "id", str_from(ids[i]), &err), &err);
        must(parquet_reader_next(reader, values, &end, &err) && !end, &err);
        parquet_reader_free(reader);
        close(fd);
    }
    double one_us = (double)(clock_thread_cpu_us() - from_us) / (double)kept;
    print("parquet_find_ms", one_us / 1000, "ms");
    from_us = clock_thread_cpu_us();
    for (size_t i = 0; i < kept; i++) {
        parquet_reader_free(open_table(path, &fd));
        close(fd);
    }
    double open_us = (double)(clock_thread_cpu_us() - from_us) / (double)kept;
    print("parquet_open_ms", open_us / 1000, "ms");
    print("parquet_row_groups", (double)groups, "");
}

int main(int argc, char **argv)
{
    char path[512], other[512];
    int64_t rows;
    if (argc != 3 || !str_to_i64(str_from(argv[1]), &rows) || rows < FINDS) {
        fprintf(stderr, "usage: %s ROWS FOLDER\n", argv[0]);
        return 2;
    }
    snprintf(path, sizeof path, "%s/notifications.parquet", argv[2]);
    snprintf(other, sizeof other, "%s/attempts.parquet", argv[2]);
    measure(
        &(Table){notifications, NOTIFICATION_COLUMNS, make_notification}, "", (uint64_t)rows, path);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    print("parquet_memory_mb", (double)usage.ru_maxrss / 1024, "MB");
    measure(&(Table){attempts, ATTEMPT_COLUMNS, make_attempt}, "_attempts", (uint64_t)rows, other);
    find_ids(path, (uint64_t)rows);
    printf("]\n");
    return 0;
}
