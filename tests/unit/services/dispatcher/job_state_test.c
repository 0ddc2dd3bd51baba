// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/job_state.h"
#include "tests/unit/common/base/states/states_walk.h"

// As drawn in job_state.h.
static const StateRow ROWS[] = {
    [JOB_ADMITTED] = {"admitted", "opening, held, ended"},
    [JOB_HELD] = {"held", "opening, ended"},
    [JOB_OPENING] = {"opening", "claiming, ended"},
    [JOB_CLAIMING] = {"claiming", "claimed, refused, ended"},
    [JOB_REFUSED] = {"refused", "taking over, parking, recorded, ended"},
    [JOB_TAKING_OVER] = {"taking over", "claimed, ended"},
    [JOB_PARKING] = {"parking", "recorded, ended"},
    [JOB_CLAIMED] = {"claimed", "sending, moving, recording, releasing, ended"},
    [JOB_SENDING] = {"sending", "moving, recording, releasing"},
    [JOB_MOVING] = {"moving", "claimed, recording, ended"},
    [JOB_RECORDING] = {"recording", "recorded, proved, ended"},
    [JOB_RELEASING] = {"releasing", "ended"},
    [JOB_RECORDED] = {"recorded", "ended"},
    [JOB_PROVED] = {"proved", "ended"},
    [JOB_ENDED] = {"ended", ""},
};

static bool move(unsigned *state, unsigned next)
{
    JobState at = (JobState)*state;
    bool moved = job_state_move(&at, (JobState)next, STR("ntf_01/1"));
    *state = at;
    return moved;
}

static void a_job_moves_as_drawn_and_not_otherwise(void **state)
{
    (void)state;
    states_walk(&(StateWalk){ROWS, JOB_STATE_COUNT, move});
}

// What is claimed is renewed until its outcome, or its release, is in the ledger.
static void a_claim_lasts_from_the_send_to_the_ledger(void **state)
{
    (void)state;
    for (JobState each = 0; each < JOB_STATE_COUNT; each++) {
        bool claimed = each == JOB_SENDING || each == JOB_MOVING || each == JOB_RECORDING || each == JOB_RELEASING;
        assert_int_equal(job_state_is_claimed(each), claimed);
    }
}

// A refused move gives back what is at rest: that must be allowed, and must not take a mail from
// the vendor or from a statement that is under way.
static void what_is_at_rest_can_be_given_back(void **state)
{
    (void)state;
    for (JobState each = 0; each < JOB_STATE_COUNT; each++) {
        assert_false(job_state_is_at_rest(each) && job_state_is_claimed(each));
        assert_true(!job_state_is_at_rest(each) || states_row_has(&ROWS[each], "ended"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_moves_as_drawn_and_not_otherwise),
        cmocka_unit_test(a_claim_lasts_from_the_send_to_the_ledger),
        cmocka_unit_test(what_is_at_rest_can_be_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
