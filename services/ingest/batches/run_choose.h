// SPDX-License-Identifier: Apache-2.0
// A batch with a query chooses its members before its first step: a page of recipients, sealed as a
// chunk and stored with how far the choice has come, then the next. Law: it is chosen in the order
// of the recipients' ids, so a recipient is in it once, however often the process dies; whoever
// comes while it is being chosen may be in it or not.
#pragma once

#include "services/ingest/batches/run_life.h"

bool run_chooses(const Run *run); // its members are not all chosen yet
void run_choose(Run *run);        // one page
