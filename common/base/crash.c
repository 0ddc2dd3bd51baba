// SPDX-License-Identifier: Apache-2.0
#include "common/base/crash.h"

#ifdef STENTOR_CRASH_POINTS
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_OPTIONS = 2, PASSES_MAX = 1000000 };

typedef struct Point {
    const char *name, *services, *before, *after;
} Point;

#define ROW(name, services, before, after) {name, services, before, after},
static const Point points[] = {CRASH_POINTS(ROW)};
#undef ROW
enum { POINT_COUNT = sizeof points / sizeof *points };

// Of the whole process, read from the environment once; the one exception to the rule that only
// common/service reads it.
static bool is_read;
static const char *wanted; // NULL: none is
static long passes_left;

static const char *find(Str name)
{
    for (int i = 0; i < POINT_COUNT; i++) {
        if (str_eq(str_from(points[i].name), name)) {
            return points[i].name;
        }
    }
    return NULL;
}

static void read_environment(void)
{
    is_read = true;
    const char *text = getenv("STENTOR_CRASH_AT");
    if (text == NULL || text[0] == '\0') {
        return;
    }
    Str name = str_from(text);
    int64_t passes = 1;
    ptrdiff_t colon = str_find(name, ':');
    bool fine = true;
    if (colon >= 0) {
        fine = str_to_i64(str_slice(name, (size_t)colon + 1, name.len), &passes);
        name = str_slice(name, 0, (size_t)colon);
    }
    wanted = find(name);
    if (wanted == NULL || !fine || passes < 1 || passes > PASSES_MAX) {
        fprintf(
            stderr, "STENTOR_CRASH_AT is '%s': expected one of --crash-points, or name:N\n", text);
        _exit(EXIT_OPTIONS);
    }
    passes_left = (long)passes;
}

void crash_pass(const char *name)
{
    if (!is_read) {
        read_environment();
    }
    if (wanted == NULL || strcmp(wanted, name) != 0 || --passes_left > 0) {
        return;
    }
    fprintf(stderr, "crash point '%s' reached\n", name);
    kill(getpid(), SIGKILL);
    abort(); // not reached: SIGKILL to oneself is delivered before kill() returns
}

static bool contains(Str text, Str part)
{
    for (size_t i = 0; part.len > 0 && i + part.len <= text.len; i++) {
        if (memcmp(text.ptr + i, part.ptr, part.len) == 0) {
            return true;
        }
    }
    return false;
}

static struct timespec late_at; // tv_sec 0: no late killer is in hand

static void kill_for(const char *text)
{
    fprintf(stderr, "input with '%s' kills\n", text);
    kill(getpid(), SIGKILL);
}

static void kill_after(long ms)
{
    if (late_at.tv_sec != 0) {
        return; // the first one does it
    }
    clock_gettime(CLOCK_MONOTONIC, &late_at);
    late_at.tv_sec += ms / 1000;
    late_at.tv_nsec += ms % 1000 * 1000000;
    if (late_at.tv_nsec >= 1000000000) {
        late_at.tv_sec++;
        late_at.tv_nsec -= 1000000000;
    }
}

bool crash_input(Str id, Str payload)
{
    static bool known;
    static const char *kills, *hangs, *after;
    if (!known) {
        known = true;
        kills = getenv("STENTOR_CRASH_ON");
        hangs = getenv("STENTOR_HANG_ON");
        after = getenv("STENTOR_CRASH_AFTER_MS");
    }
    bool ends = contains(id, str_from(kills)) || contains(payload, str_from(kills));
    if (ends && after != NULL) {
        kill_after(strtol(after, NULL, 10));
        return true;
    }
    if (ends) {
        kill_for(kills);
    }
    bool stands = contains(id, str_from(hangs)) || contains(payload, str_from(hangs));
    for (volatile bool ever = stands; ever;) {
        continue; // with all of a processor, as an endless loop does
    }
    return false;
}

void crash_late(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    bool is_past = now.tv_sec > late_at.tv_sec ||
                   (now.tv_sec == late_at.tv_sec && now.tv_nsec >= late_at.tv_nsec);
    if (late_at.tv_sec != 0 && is_past) {
        kill_for("STENTOR_CRASH_ON");
    }
}

bool crash_points_print(const char *service, Buf *out)
{
    for (int i = 0; i < POINT_COUNT; i++) {
        Str rest = str_from(points[i].services);
        Str word;
        while (str_split(&rest, ' ', &word)) {
            if (str_eq(word, str_from(service))) {
                buf_printf(out, "%s\t%s\t%s\n", points[i].name, points[i].before, points[i].after);
            }
        }
    }
    return !out->full;
}
#else
// A translation unit must not be empty (C17 6.9).
typedef int CrashPointsAreOff;
#endif
