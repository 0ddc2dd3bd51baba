// SPDX-License-Identifier: Apache-2.0
// links: stentor_keywork
// keywork: N data keys (the first argument, 1,000,000 by default) wrapped again into a new table,
// by the program's own turn. tests/bench/archive runs it; alone: tests/harness/with-postgres
// build/bench/tests/bench_keywork 10000000
// A JSON list of {"name", "value", "unit"}, as tests/bench/run --json writes.
#include <dirent.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/codec/hash.h"
#include "common/codec/seal.h"
#include "common/db/master_keys.h"
#include "common/db/migrate.h"
#include "common/keywork/keys_dump.h"
#include "common/keywork/keywork.h"

enum { FIELDS = 4 };

static void must(bool ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "%s\n", what);
        exit(1);
    }
}

static void migrate(const char *url)
{
    Error err = {0};
    MigrateReport report;
    MigrateJob job = {
        .url = url, .folder = "migrations", .schemas = migrate_schemas, .role = MIGRATE_OWNER};
    must(db_bootstrap(url, job.folder, &err) && db_migrate(&job, &report, &err), err.text);
}

static void add(Buf *buf, const void *bytes, uint32_t len)
{
    uint8_t head[4] = {
        (uint8_t)(len >> 24), (uint8_t)(len >> 16), (uint8_t)(len >> 8), (uint8_t)len};
    (void)buf_append(buf, head, sizeof head);
    (void)buf_append(buf, bytes, len);
}

static void put_key(PGconn *pg, MasterKey *master, uint32_t number, Buf *buf)
{
    static const uint8_t count[] = {0, FIELDS};
    static const uint8_t one[] = {0, 0, 0, 1};
    uint8_t hash[SHA256_LEN];
    uint8_t wrapped[WRAPPED_KEY_LEN];
    sha256(str_of(&number, sizeof number), hash);
    data_key_free(data_key_new(master, hash, 1, wrapped));
    (void)buf_append(buf, count, sizeof count);
    add(buf, "acme", 4);
    add(buf, hash, KEY_SUBJECT_LEN);
    add(buf, one, sizeof one);
    add(buf, wrapped, sizeof wrapped);
    if (buf->len > 60000) {
        must(PQputCopyData(pg, buf->ptr, (int)buf->len) == 1, PQerrorMessage(pg));
        buf_clear(buf);
    }
}

static void fill(PGconn *pg, MasterKey *master, long rows)
{
    static const char head[] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0";
    Buf buf;
    buf_init(&buf, 100000);
    PQclear(PQexec(
        pg, "COPY keys.data_keys (tenant_id, subject, generation, wrapped) FROM STDIN (FORMAT "
            "binary)"));
    (void)buf_append(&buf, head, 19);
    for (long i = 0; i < rows; i++) {
        put_key(pg, master, (uint32_t)i, &buf);
    }
    (void)buf_append(&buf, "\377\377", 2);
    must(
        PQputCopyData(pg, buf.ptr, (int)buf.len) == 1 && PQputCopyEnd(pg, NULL) == 1,
        PQerrorMessage(pg));
    PGresult *done = PQgetResult(pg);
    must(PQresultStatus(done) == PGRES_COMMAND_OK, PQerrorMessage(pg));
    PQclear(done);
    PQclear(PQgetResult(pg));
    PQclear(PQexec(pg, "VACUUM ANALYZE keys.data_keys"));
    buf_done(&buf);
}

static double cpu_s(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

// Parent, and the CPU of a process and of its children that have ended. false: it is gone.
static bool read_stat(const char *pid, long *ret_parent, double *ret_cpu_s)
{
    char path[300];
    char line[1024] = "";
    unsigned long ticks[4];
    (void)snprintf(path, sizeof path, "/proc/%s/stat", pid);
    FILE *file = fopen(path, "r");
    bool read = file != NULL && fgets(line, sizeof line, file) != NULL;
    if (file != NULL) {
        (void)fclose(file);
    }
    const char *behind = strrchr(line, ')'); // the name may hold blanks
    if (!read || behind == NULL ||
        sscanf(
            behind, ") %*c %ld %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu", ret_parent,
            &ticks[0], &ticks[1], &ticks[2], &ticks[3]) != 5) {
        return false;
    }
    *ret_cpu_s = (double)(ticks[0] + ticks[1] + ticks[2] + ticks[3]) / (double)sysconf(_SC_CLK_TCK);
    return true;
}

// Of all processes of the server, those that helped and have ended included.
static double server_cpu_s(PGconn *pg)
{
    char pid[24];
    long server;
    long parent;
    double sum;
    double cpu;
    (void)snprintf(pid, sizeof pid, "%d", PQbackendPID(pg));
    must(read_stat(pid, &server, &cpu), "this session's process is gone");
    (void)snprintf(pid, sizeof pid, "%ld", server);
    must(read_stat(pid, &parent, &sum), "the server is gone");
    DIR *processes = opendir("/proc");
    must(processes != NULL, "/proc");
    for (struct dirent *at = readdir(processes); at != NULL; at = readdir(processes)) {
        bool child = ascii_is_digit(at->d_name[0]) && read_stat(at->d_name, &parent, &cpu) &&
                     parent == server;
        sum += child ? cpu : 0;
    }
    (void)closedir(processes);
    return sum;
}

static void print(const char *name, double value, const char *unit)
{
    static bool more;
    printf(
        "%s{\"name\": \"%s\", \"value\": %.6g, \"unit\": \"%s\"}", more ? ",\n" : "[", name, value,
        unit);
    more = true;
}

static void measure(Keywork *work, PGconn *pg, const char *folder, long rows)
{
    KeyworkReport report;
    KeysDump dump;
    Error err = {0};
    char path[200];
    double cpu = cpu_s();
    double server = server_cpu_s(pg);
    int64_t started_us = clock_mono_us();
    must(keywork_turn(work, clock_now_us(), &report, &err), err.text);
    double wall = (double)(clock_mono_us() - started_us) / 1e6;
    must(report.wrapped == (uint64_t)rows && report.left == 0, "not all keys were wrapped again");
    double each = 1e6 / (double)rows;
    print("rewrap_keys_per_s", (double)rows / wall, "keys/s");
    print("rewrap_process_cpu_us", (cpu_s() - cpu) * each, "us/key");
    print("rewrap_postgres_cpu_us", (server_cpu_s(pg) - server) * each, "us/key");
    started_us = clock_mono_us();
    (void)snprintf(path, sizeof path, "%s/keys.dump", folder);
    must(keys_dump_write(pg, path, clock_now_us(), NULL, &dump, &err), err.text);
    print("keys_dump_per_s", (double)rows * 1e6 / (double)(clock_mono_us() - started_us), "keys/s");
    struct stat file;
    must(stat(path, &file) == 0, path);
    print("keys_dump_bytes", (double)file.st_size / (double)rows, "B/key");
    printf("]\n");
    (void)unlink(path);
}

int main(int argc, char **argv)
{
    const char *url = getenv("STENTOR_TEST_DATABASE_URL");
    long rows = argc > 1 ? strtol(argv[1], NULL, 10) : 1000000;
    char folder[] = "/tmp/keywork.XXXXXX";
    char file[64];
    char epochs[64];
    char service[400];
    char random[132];
    Error err = {0};
    KeyRegister keys;
    must(
        url != NULL && rows > 0 && mkdtemp(folder) != NULL,
        "run it through tests/harness/with-postgres");
    (void)snprintf(file, sizeof file, "%s/master.key", folder);
    (void)snprintf(epochs, sizeof epochs, "%s/epochs", folder);
    (void)snprintf(service, sizeof service, "%s&user=stentor_ingest", url);
    master_key_generate(random);
    FILE *out = fopen(file, "w");
    must(
        out != NULL && fputs(random, out) >= 0 && fclose(out) == 0 && mkdir(epochs, 0700) == 0,
        file);
    migrate(url);
    PGconn *pg = PQconnectdb(url);
    MasterKey *master = master_key_parse(str_from(random), &err);
    must(master != NULL && master_keys_learn(pg, master, &keys, &err), err.text);
    fill(pg, master, rows);
    Keywork *work = keywork_new(&(KeyworkOptions){
        .database_url = service,
        .application_name = "keywork-bench",
        .master_key_file = file,
        .epoch_folder = epochs,
        .dump_folder = "",
        .epoch_us = INT64_C(604800000000),
        .keep_us = INT64_C(604800000000),
        .bulk_min = 1});
    measure(work, pg, folder, rows);
    keywork_free(work);
    master_key_free(master);
    PQfinish(pg);
    return 0;
}
