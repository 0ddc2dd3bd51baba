// SPDX-License-Identifier: Apache-2.0
// What is fetched from SNS: the certificates that its messages name, kept for a day, and the
// confirmation of a subscription. The caller has checked that the URL is the topic's own
// (common/vendor/ses/sns.h); nothing else is ever asked, and redirects are not followed.
#pragma once

#include <uv.h>

#include "common/base/error.h"
#include "common/base/str.h"

typedef struct SnsLink SnsLink;

// origin: "http://127.0.0.1:9000" instead of https://sns.<region>.amazonaws.com, wherever it is;
// empty: that one, at public addresses only.
SnsLink *sns_link_new(uv_loop_t *loop, const char *origin, Error *err);
void sns_link_free(SnsLink *link, void (*on_freed)(void *ctx), void *ctx);

// What was answered (a PEM, or the confirmation's XML), from the loop or at once; err: TRANSIENT.
typedef void (*SnsDone)(void *ctx, Str body, const Error *err);
void sns_certificate(SnsLink *link, Str url, SnsDone done, void *ctx);
void sns_confirm(SnsLink *link, Str url, SnsDone done, void *ctx);
