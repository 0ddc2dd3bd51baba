// SPDX-License-Identifier: Apache-2.0
// The clocks that a deletion hangs on, read and compared.
#pragma once

#include "common/archive/archive.h"

// Before anything is deleted. PERMANENT: they disagree; archive.installation.clock_fault says why,
// and AUDIT gets an entry once a day. Its segment is the news that ends the doubt after quiet
// weeks.
bool archive_clocks_agree(Archive *archive, Error *err);
