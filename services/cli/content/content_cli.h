// SPDX-License-Identifier: Apache-2.0
// What `content` and `callbacks` share.
#pragma once

#include "common/content/content_session.h"
#include "common/session/audit_session.h"
#include "services/cli/operate/archived_log.h"

typedef struct ContentLinks {
    ArchivedLog log;
    ContentSession session;
} ContentLinks;

// Begins as {0}. Segments too, where STENTOR_STORAGE_URL is set. Closed also after a failure.
bool content_links_open(Cli *cli, ContentLinks *ret, Error *err);
void content_links_close(ContentLinks *links);
// On standard output, with its lines, but without what a terminal would take for a command.
void content_print_text(Str text);
