// SPDX-License-Identifier: Apache-2.0
// Reads one small file at start-up: options, secrets, the master key. It blocks, so it is not for a
// running loop.
#pragma once

#include "common/base/buf.h"
#include "common/base/error.h"

// Appends the whole file; its limit is the Buf's own. ERROR_CONFIG names the path and the reason.
bool read_file(const char *path, Buf *out, Error *err) __attribute__((warn_unused_result));
