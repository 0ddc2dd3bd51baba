// SPDX-License-Identifier: Apache-2.0
// Semantic versions 2.0.0 (semver.org) as text: is it one, and which of two is the higher. Pure.
#pragma once

#include "common/base/str.h"

enum { SEMVER_MAX = 64 };

bool semver_is(Str text); // "1.2.3", "1.2.3-rc.1", "1.2.3+build"; at most SEMVER_MAX bytes
// Precedence of section 11: below 0, 0, above 0. Both must be versions; build metadata does not
// count.
int semver_compare(Str a, Str b);
// The next release: of a pre-release the release itself, else one patch above. `highest` is a
// version, or empty: "1.0.0". false: its patch has too many digits to count.
bool semver_next(Str highest, char ret[SEMVER_MAX + 1]);
