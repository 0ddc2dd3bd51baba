// SPDX-License-Identifier: Apache-2.0
// Lives of a service, one after the other: each is this program again, with a worker of its own,
// and dies while it works, dies of what it has in hand later on, is killed while it waits, or ends
// as it should.
#include "common/bus/consume/reader.h"
#include "common/bus/consume/worker.h"
#include "common/codec/event.h"
#include "stentor/v1/dead.pb-c.h"
#include "tests/unit/common/bus/bus_tools.h"

enum { ACK_WAIT_MS = 500, INPUTS = 40, LIFTED_MS = 700, LATE_MS = 450 };

static Rig rig;

// ---- a life ----

typedef struct Life {
    Rig rig;
    const char *way;     // "die", "die-late", "wait" or "give-back"
    const char *payload; // what it dies of
    Delivery *held[INPUTS];
    size_t held_count;
} Life;

static bool has_payload(const Life *life, Delivery **deliveries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq(deliveries[i]->message.payload, str_from(life->payload))) {
            return true;
        }
    }
    return false;
}

static void settle_all(Delivery **deliveries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        printf(STR_FMT "\n", STR_ARG(deliveries[i]->message.payload));
        delivery_settle(deliveries[i], NULL);
    }
}

static void on_timer_late(uv_timer_t *timer)
{
    (void)timer;
    kill(getpid(), SIGKILL);
}

static void die_late(Life *life)
{
    static uv_timer_t late;
    uv_timer_init(&life->rig.loop, &late);
    uv_timer_start(&late, on_timer_late, LATE_MS, 0);
}

// All but what it dies of is settled.
static void take_late(Life *life, Delivery **deliveries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq(deliveries[i]->message.payload, str_from(life->payload))) {
            die_late(life);
        } else {
            settle_all(&deliveries[i], 1);
        }
    }
}

static void take(void *ctx, Delivery **deliveries, size_t count)
{
    Life *life = ctx;
    if (strcmp(life->way, "die") == 0) {
        if (has_payload(life, deliveries, count)) {
            kill(getpid(), SIGKILL);
        }
        settle_all(deliveries, count);
    } else if (strcmp(life->way, "die-late") == 0) {
        take_late(life, deliveries, count);
    } else {
        for (size_t i = 0; i < count; i++) {
            life->held[life->held_count++] = deliveries[i];
        }
        printf("held\n");
    }
    fflush(stdout);
}

static Worker *start(Rig *on, WorkerHandler handler, void *ctx)
{
    WorkerOptions options = {
        .consumer = topology_consumer("stentor-renderer", "REQUEST_NORMAL"), .stage = "renderer"};
    Worker *worker = worker_new(on->bus, &options, handler, ctx);
    worker_start(worker);
    return worker;
}

static void end(Rig *on, Worker *worker)
{
    on->done = false;
    worker_free(worker, on_rig_done, on);
    WAIT_FLAG(on, on->done);
}

static void live(const char *way, const char *payload)
{
    static Life life;
    Error cancelled;
    life = (Life){.way = way, .payload = payload};
    rig_open(&life.rig, getenv("STENTOR_TEST_NATS_URL"));
    Worker *worker = start(&life.rig, take, &life);
    WAIT(&life.rig, life.held_count > 0); // "die" never comes as far, and is killed at last
    if (strcmp(way, "wait") == 0) {
        pass_ms(&life.rig, WAIT_MS);
    }
    error_set(&cancelled, ERROR_CANCELLED, "no database");
    life.rig.done = false;
    worker_stop(worker, on_rig_done, &life.rig);
    for (size_t i = 0; i < life.held_count; i++) {
        delivery_settle(life.held[i], &cancelled);
    }
    WAIT_FLAG(&life.rig, life.rig.done);
    end(&life.rig, worker);
    rig_close(&life.rig);
}

// ---- what the lives leave ----

static char settled_path[64];

static pid_t begin_life(const char *way, const char *payload)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        freopen(settled_path, "a", stdout);
        execl("/proc/self/exe", "life", way, payload, (char *)NULL);
        _exit(127);
    }
    return pid;
}

static int end_of(pid_t pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void live_and_die(const char *way, const char *payload)
{
    int status = end_of(begin_life(way, payload));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static size_t settled(const char *payload)
{
    char line[16];
    size_t count = 0;
    FILE *file = fopen(settled_path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        count += strcmp(line, payload) == 0 ? 1 : 0;
    }
    if (file != NULL) {
        fclose(file);
    }
    return count;
}

static bool all_acked(int count)
{
    char floor[48];
    snprintf(floor, sizeof floor, "\"stream_seq\":%d", count);
    const char *at =
        strstr(rig_ask(&rig, "$JS.API.CONSUMER.INFO.REQUEST_NORMAL.renderer", ""), "\"ack_floor\"");
    return at != NULL && strstr(at, floor) != NULL;
}

// Killed from outside, at any moment of its waiting.
static void live_waiting(size_t lives_before)
{
    pid_t pid = begin_life("wait", "");
    WAIT(&rig, settled("held") > lives_before);
    pass_ms(&rig, LIFTED_MS);
    kill(pid, SIGKILL);
    end_of(pid);
}

// The last life has nothing to die of, or finds it proven.
static void live_until_acked(const char *payload, int count)
{
    pid_t pid = begin_life("die", payload);
    WAIT(&rig, all_acked(count));
    pass_ms(&rig, 300);
    kill(pid, SIGTERM);
    int status = end_of(pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

static int open_rig(void **state)
{
    (void)state;
    snprintf(settled_path, sizeof settled_path, "/tmp/stentor-guard-XXXXXX");
    int file = mkstemp(settled_path);
    assert_true(file >= 0);
    close(file);
    rig_open(&rig, getenv("STENTOR_TEST_NATS_URL"));
    rig_fresh(&rig, ACK_WAIT_MS);
    return 0;
}

static int close_rig(void **state)
{
    (void)state;
    unlink(settled_path);
    rig_close(&rig);
    return 0;
}

typedef struct Standing {
    size_t marks;
    bool read;
} Standing;

static void count_standing(void *ctx, const BusMessage *messages, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ((Standing *)ctx)->marks += messages[i].payload.len > 0 ? 1 : 0;
    }
}

static void on_read(void *ctx)
{
    ((Standing *)ctx)->read = true;
}

static void on_failed(void *ctx, const Error *err)
{
    (void)ctx;
    fail_msg("%s", err->text);
}

static size_t standing_marks(void)
{
    static const ReaderHandlers handlers = {count_standing, on_read, on_failed};
    Standing standing = {0};
    Reader *reader =
        reader_new(rig.bus, &(ReaderOptions){.stream = "IN_HAND"}, &handlers, &standing);
    WAIT_FLAG(&rig, standing.read);
    rig.done = false;
    reader_free(reader, on_rig_done, &rig);
    WAIT_FLAG(&rig, rig.done);
    return standing.marks;
}

// ---- what the letter says ----

static void read_letter(void *ctx, const BusMessage *messages, size_t count)
{
    Arena *arena = arena_new(0);
    Error err;
    assert_int_equal(count, 1);
    const Stentor__V1__DeadLetter *letter = (const Stentor__V1__DeadLetter *)event_unpack(
        &stentor__v1__dead_letter__descriptor, messages[0].payload, arena, &err);
    assert_non_null(letter);
    assert_non_null(strstr(letter->reason, "poison message: 5 processes in a row died or hung"));
    assert_string_equal(letter->stage, "renderer");
    assert_string_equal(letter->stream, "REQUEST_NORMAL");
    assert_string_equal(letter->meta->tenant, "acme");
    assert_string_equal(letter->meta->notification_id, "unknown");
    assert_int_equal(letter->payload.len, strlen("20"));
    assert_memory_equal(letter->payload.data, "20", 2);
    ((Standing *)ctx)->marks++;
    arena_free(arena);
}

static void assert_one_letter(void)
{
    static const ReaderHandlers handlers = {read_letter, on_read, on_failed};
    Standing letters = {0};
    Reader *reader = reader_new(rig.bus, &(ReaderOptions){.stream = "DEAD"}, &handlers, &letters);
    WAIT_FLAG(&rig, letters.read);
    assert_int_equal(letters.marks, 1);
    rig.done = false;
    reader_free(reader, on_rig_done, &rig);
    WAIT_FLAG(&rig, rig.done);
}

// ---- the tests ----

static void finding_13_a_message_that_kills_is_found_and_quarantined(void **state)
{
    (void)state;
    enum { DEATHS = 6 }; // its first delivery has no mark
    publish_many(&rig, "ntf.request.normal.acme", "m", INPUTS);
    for (int i = 0; i < DEATHS; i++) {
        live_and_die("die", "20");
        assert_int_equal(rig_count(&rig, "DEAD"), 0);
    }
    live_until_acked("20", INPUTS);
    for (int i = 0; i < INPUTS; i++) {
        char payload[8];
        snprintf(payload, sizeof payload, "%d", i);
        assert_int_equal(settled(payload), i == 20 ? 0 : 1);
    }
    assert_one_letter();
    assert_int_equal(standing_marks(), 0); // no mark names what is settled
}

static void finding_13_what_kills_late_is_found_and_quarantined(void **state)
{
    (void)state;
    enum { DEATHS = 7 }; // its first delivery has no mark, the mark of its second one is lifted
    publish_many(&rig, "ntf.request.normal.acme", "m", INPUTS);
    for (int i = 0; i < DEATHS; i++) {
        live_and_die("die-late", "20");
        assert_int_equal(rig_count(&rig, "DEAD"), 0);
    }
    live_until_acked("20", INPUTS);
    assert_one_letter();
    assert_int_equal(settled("19"), 1);
    assert_int_equal(settled("21"), 1);
    assert_int_equal(standing_marks(), 0);
}

static void finding_13_being_killed_while_it_waits_does_not_count(void **state)
{
    (void)state;
    enum { LIVES = 9 };
    publish_many(&rig, "ntf.request.normal.acme", "m", 3);
    for (size_t i = 0; i < LIVES; i++) {
        live_waiting(i);
    }
    // A kill may meet one of the moments at which the loop turns, not one after the other.
    assert_in_range(standing_marks(), 0, 4);
    live_until_acked("none", 3);
    assert_int_equal(rig_count(&rig, "DEAD"), 0);
}

// The first delivery has no mark, nor has one whose mark the server did not take in time
// (guard_watch.c).
static void die_until_marked(const char *payload, size_t marks)
{
    enum { UNMARKED_MAX = 8 };
    for (size_t i = 0; standing_marks() < marks; i++) {
        assert_true(i < marks + UNMARKED_MAX);
        live_and_die("die", payload);
    }
    assert_int_equal(standing_marks(), marks);
}

static void finding_13_what_was_given_back_starts_from_nothing(void **state)
{
    (void)state;
    publish_many(&rig, "ntf.request.normal.acme", "m", 1);
    die_until_marked("0", 4);
    int status = end_of(begin_life("give-back", "0")); // it has it in hand, and lives
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(standing_marks(), 0);
    die_until_marked("0", 4);
    live_until_acked("none", 1);
    assert_int_equal(rig_count(&rig, "DEAD"), 0); // four and four are not five in a row
    assert_int_equal(standing_marks(), 0);
}

// As after a chaos run: its process is dead, and what it names was settled by one that had it
// first.
static void a_mark_of_what_is_done_ends(void **state)
{
    (void)state;
    publish_many(&rig, "ntf.request.normal.acme", "m", 2);
    live_until_acked("none", 2);
    Acks acks = {0};
    publish_id(&rig, "ntf.inhand.test.dead", "left-1", "REQUEST_NORMAL 2 1/77 2/78", &acks);
    publish_id(&rig, "ntf.inhand.test.alone", "left-2", "REQUEST_NORMAL 1 2/78", &acks);
    WAIT(&rig, acks.stored == 2);
    assert_int_equal(standing_marks(), 2);
    pid_t pid = begin_life("die", "none");
    WAIT(&rig, standing_marks() == 0);
    kill(pid, SIGTERM);
    end_of(pid);
}

static void without_the_stream_work_goes_on(void **state)
{
    (void)state;
    rig_ask(&rig, "$JS.API.STREAM.DELETE.IN_HAND", "");
    publish_many(&rig, "ntf.request.normal.acme", "m", 2);
    live_and_die("die", "1");
    live_until_acked("none", 2);
}

int main(int argc, char **argv)
{
    if (argc == 3) {
        live(argv[1], argv[2]);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            finding_13_a_message_that_kills_is_found_and_quarantined, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(
            finding_13_what_kills_late_is_found_and_quarantined, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(
            finding_13_being_killed_while_it_waits_does_not_count, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(
            finding_13_what_was_given_back_starts_from_nothing, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(a_mark_of_what_is_done_ends, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(without_the_stream_work_goes_on, open_rig, close_rig),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
