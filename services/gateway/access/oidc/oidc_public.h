// SPDX-License-Identifier: Apache-2.0
// /console/oidc and /console/callback: a person signs in at an OpenID provider (code flow with
// PKCE, OpenID Connect Core 3.1). Law: a session begins once for a login, in the browser that began
// it, for an ID token that is good, with what the provider's groups give; nothing of the request
// says where the browser goes.
#pragma once

#include "common/codec/master_key.h"
#include "services/gateway/access/console_public.h"
#include "services/gateway/access/oidc/oidc_options.h"

// origin: STENTOR_CONSOLE_URL. *ret NULL: no issuer is set. false: ERROR_CONFIG names the option.
// What the options and the origin point to is borrowed.
bool oidc_new(
    uv_loop_t *loop, const OidcOptions *options, const MasterKey *master, Str origin, Oidc **ret,
    Error *err);
// Once no request is with it. on_freed comes from the loop; for NULL at once.
void oidc_free(Oidc *oidc, void (*on_freed)(void *ctx), void *ctx);

void oidc_begin(const ConsolePublic *console, HttpRequest *http);
void oidc_callback(const ConsolePublic *console, HttpRequest *http);
