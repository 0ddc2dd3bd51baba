// SPDX-License-Identifier: Apache-2.0
// Whether bytes hold a text. Pure.
#pragma once

#include "common/base/str.h"

bool text_search(Str bytes, Str text); // an empty text: true
