// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/codec/master_key.h"
#include "common/service/harden.h"

// In a process of its own: what it does cannot be undone. true when `check` held.
static bool holds_in_child(bool (*check)(void))
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(check() ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool refuses_dumps(void)
{
    struct rlimit limit;
    (void)prctl(PR_SET_DUMPABLE, 1L, 0L, 0L, 0L);
    process_forbid_dumps();
    return prctl(PR_GET_DUMPABLE, 0L, 0L, 0L, 0L) == 0 && getrlimit(RLIMIT_CORE, &limit) == 0 &&
           limit.rlim_cur == 0 && limit.rlim_max == 0;
}

static void finding_16_a_process_that_holds_keys_leaves_no_core(void **state)
{
    (void)state;
    assert_true(holds_in_child(refuses_dumps));
}

// Whether the pages of `address` have a flag of VmFlags: " dd" (kept out of dumps), " lo" (locked).
static bool has_flag(const void *address, const char *flag)
{
    FILE *maps = fopen("/proc/self/smaps", "re");
    char line[512];
    bool inside = false;
    bool found = false;
    while (maps != NULL && !found && fgets(line, sizeof line, maps) != NULL) {
        unsigned long from = 0;
        unsigned long to = 0;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
            inside = (uintptr_t)address >= from && (uintptr_t)address < to;
        }
        found = inside && strncmp(line, "VmFlags:", 8) == 0 && strstr(line, flag) != NULL;
    }
    if (maps != NULL) {
        fclose(maps);
    }
    return found;
}

static bool keeps_keys_apart(void)
{
    char text[132];
    master_key_generate(text);
    MasterKey *master = master_key_parse(str_from(text), NULL);
    bool apart =
        master != NULL && has_flag(master_hash_key(master).ptr, " dd") && !has_flag(master, " dd");
    master_key_free(master);
    return apart;
}

// As many bytes may be locked as any Linux grants.
static bool locks_keys(void)
{
    char text[132];
    struct rlimit limit = {0};
    (void)getrlimit(RLIMIT_MEMLOCK, &limit);
    limit.rlim_cur = limit.rlim_max < 65536 ? limit.rlim_max : 65536;
    (void)setrlimit(RLIMIT_MEMLOCK, &limit);
    master_key_generate(text);
    MasterKey *master = master_key_parse(str_from(text), NULL);
    bool locked = master != NULL && has_flag(master_hash_key(master).ptr, " lo");
    master_key_free(master);
    return locked || limit.rlim_cur < 65536;
}

static bool lives_without_a_lock(void)
{
    (void)setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){0, 0});
    return !process_lock_memory() && keeps_keys_apart();
}

static void finding_16_keys_lie_in_memory_of_their_own(void **state)
{
    (void)state;
    assert_true(holds_in_child(keeps_keys_apart));
    assert_true(holds_in_child(locks_keys));
    assert_true(holds_in_child(lives_without_a_lock));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finding_16_a_process_that_holds_keys_leaves_no_core),
        cmocka_unit_test(finding_16_keys_lie_in_memory_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
