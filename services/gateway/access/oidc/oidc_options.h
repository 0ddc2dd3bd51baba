// SPDX-License-Identifier: Apache-2.0
// The options of signing in by OpenID Connect: OIDC_ROWS(GatewayOptions) where that has an
// `OidcOptions oidc`.
#pragma once

#include "common/service/options.h"

typedef struct OidcOptions {
    const char *issuer; // "": by links only
    const char *client_id;
    const char *client_secret; // "": a public client
    const char *scopes;
    const char *groups_claim;
    const char *name_claim;
    const char *roles;
    const char *ca_file;
} OidcOptions;

// clang-format off
#define OIDC_ROWS(type) \
    {"STENTOR_OIDC_ISSUER", OPTION_TEXT, offsetof(type, oidc.issuer), \
     "", 0, 0, false, \
     "OpenID provider at which people sign in at the console (ACCESS.md), https://id.example; empty: by one-time links only"}, \
    {"STENTOR_OIDC_CLIENT_ID", OPTION_TEXT, offsetof(type, oidc.client_id), \
     "", 0, 0, false, \
     "what the provider calls this installation"}, \
    {"STENTOR_OIDC_CLIENT_SECRET", OPTION_TEXT, offsetof(type, oidc.client_secret), \
     "", 0, 0, true, \
     "its secret there; empty: a public client"}, \
    {"STENTOR_OIDC_SCOPES", OPTION_TEXT, offsetof(type, oidc.scopes), \
     "openid profile email", 0, 0, false, \
     "what is asked of the provider; some need 'groups' too"}, \
    {"STENTOR_OIDC_GROUPS_CLAIM", OPTION_TEXT, offsetof(type, oidc.groups_claim), \
     "groups", 0, 0, false, \
     "claim of the ID token that has a person's groups"}, \
    {"STENTOR_OIDC_NAME_CLAIM", OPTION_TEXT, offsetof(type, oidc.name_claim), \
     "preferred_username", 0, 0, false, \
     "claim that is the person's name in the audit log; one that people cannot change themselves"}, \
    {"STENTOR_OIDC_ROLES", OPTION_TEXT, offsetof(type, oidc.roles), \
     "", 0, 0, false, \
     "which group may what: ops=operator@platform,acme-support=support@acme; who is in none of them may not sign in"}, \
    {"STENTOR_OIDC_CA_FILE", OPTION_TEXT, offsetof(type, oidc.ca_file), \
     "", 0, 0, false, \
     "certificates that the provider's is checked by; empty: the system's"}
// clang-format on
