// SPDX-License-Identifier: Apache-2.0
// What the chat services share: Slack, Discord and Microsoft Teams take messages for one channel of
// theirs at an incoming URL, which the recipient gave away. That URL is the address and the secret:
// it stands in no text, no log and no error. An endpoint that is gone is a bad address, never a
// fault of the service: each URL stands for itself. The application's `data` is one object for all
// of them: "blocks" for Slack, "embeds" for Discord, "card" for Teams; what is not a service's own
// is left out.
// Source: docs.slack.dev, "Sending messages using incoming webhooks"; discord-api-docs,
// resources/webhook; learn.microsoft.com, "Create incoming webhooks with Workflows".
#pragma once

#include <jansson.h>

#include "common/vendor/vendor_build.h"

enum {
    SLACK_TEXT_MAX = 40000,
    SLACK_BLOCKS_MAX = 50,
    DISCORD_TEXT_MAX = 2000,
    DISCORD_EMBEDS_MAX = 10,
    TEAMS_BODY_MAX = 28 * 1024,
    TEAMS_LINES_MAX = 200,
};

extern const VendorApi slack_api, discord_api, teams_api;

// The parts of "https://<host>/<target>": no port but 443, no user, no fragment, visible ASCII.
typedef struct ChatUrl {
    Str host;   // as it stands, lower case
    Str target; // path and query, from the '/' on
} ChatUrl;

bool chat_url(Str address, ChatUrl *ret);

// ERROR_PERMANENT when the address is none of the service's, there is neither text nor data, one is
// not UTF-8 or no object, or the text has over `text_max` characters.
bool chat_check(
    const VendorApi *api, const VendorMail *mail, const VendorAccount *account, size_t text_max,
    Error *err);
// The address, or with the setting base_url its path there. `query` is added: "wait=true".
Str chat_target(
    const VendorMail *mail, const VendorAccount *account, const char *query, Arena *arena);
// A new reference to what `data` has under that name; NULL: nothing. ERROR_PERMANENT: not of the
// type, or more than `most` of an array.
bool chat_member(
    const VendorMail *mail, const char *name, json_type type, size_t most, json_t **ret,
    Error *err);
// Frees the tree; ERROR_PERMANENT when the body is larger than the service takes.
bool chat_set_json(
    const VendorApi *api, VendorRequest *request, json_t *root, Arena *arena, Error *err);
// By the status, but an endpoint that refuses (401, 403, 404, 410) is a bad address, and whatever
// else would be a credential's fault is the message's.
void chat_read(const VendorAnswer *answer, Arena *arena, SendResult *ret);
