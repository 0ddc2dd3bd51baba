// SPDX-License-Identifier: Apache-2.0
// The public address of the API, STENTOR_RENDERER_PUBLIC_URL: what links in mails begin with, and
// where vendors report to. Several programs have the option, and it is one: what the gateway shows
// is what the renderer writes, and a vendor signs the address that the dispatcher gave it.
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"

enum { PUBLIC_URL_MAX = 200 };

#define PUBLIC_URL_OPTION "STENTOR_RENDERER_PUBLIC_URL"

// Without a '/' at its end, in `arena`; empty: there is none. ERROR_CONFIG when `url` is neither
// empty nor an http or https URL that is fit for a header.
bool public_url_read(const char *url, Arena *arena, Str *ret, Error *err);
