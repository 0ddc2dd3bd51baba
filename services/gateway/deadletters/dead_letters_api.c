// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/deadletters/dead_letters_api.h"

#include "common/base/clock.h"
#include "services/gateway/deadletters/dead_letters_internal.h"

// The routes with a word in the place of a sequence first.
void dead_letters_api_add(Api *api, DeadLettersApi *letters)
{
    letters->keys = event_keys_new(letters->master);
    dead_letters_list_add(api, letters);
    dead_letters_bulk_add(api, letters);
    dead_letters_one_add(api, letters);
}

void dead_letters_api_tick(DeadLettersApi *letters)
{
    letter_scans_tick(&letters->scans, clock_mono_us());
}

void dead_letters_api_done(DeadLettersApi *letters)
{
    event_keys_free(letters->keys);
}
