// SPDX-License-Identifier: Apache-2.0
#include "services/cli/content/content_cli.h"

bool content_links_open(Cli *cli, ContentLinks *ret, Error *err)
{
    const Settings *settings = &cli->settings;
    if (!cli_need(settings->database_url, "STENTOR_DATABASE_URL", err) ||
        !cli_need(settings->master_key_file, "STENTOR_MASTER_KEY_FILE", err) ||
        !archived_log_open(cli, true, &ret->log, err)) {
        return false;
    }
    ContentOptions options = {
        .session = settings->session,
        .database_url = settings->database_url,
        .master_key_file = settings->master_key_file,
        .epoch_keys_dir = settings->epoch_keys_dir,
        .past = ret->log.open ? &ret->log.past : NULL,
        .kept = args_has(&cli->args, "kept")};
    return content_session_open(&ret->session, &options, cli->arena, err);
}

void content_links_close(ContentLinks *links)
{
    content_session_close(&links->session);
    archived_log_close(&links->log);
}

void content_print_text(Str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        bool shown = c == '\n' || c == '\t' || (c >= 0x20 && c != 0x7f);
        if (c != '\r') {
            putchar(shown ? c : '?');
        }
    }
    if (text.len > 0 && text.ptr[text.len - 1] != '\n') {
        putchar('\n');
    }
}
