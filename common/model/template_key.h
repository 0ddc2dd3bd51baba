// SPDX-License-Identifier: Apache-2.0
// Where a template version stands in CONFIG, behind cfg.template.<tenant>: a template is a tenant's
// key on one channel, so <key>.<channel>.<version, dots as underscores>. Entries of releases before
// 2026-11-23 lack the channel; the message names it. They stay where they are, and an entry whose
// subject names the channel wins over one whose does not. Pure.
#pragma once

#include "common/model/enums.h"

typedef struct TemplateKey {
    Str key;
    Channel channel; // NONE: the subject does not name it
    Str version;     // dots as underscores
} TemplateKey;

enum { TEMPLATE_KEY_SIZE = 160 };

// false: neither form. The slices point into `text`.
bool template_key_parse(Str text, TemplateKey *ret);
// The version with its dots. channel NONE: without one. Empty: longer than any that is stored.
Str template_key_write(char out[TEMPLATE_KEY_SIZE], Str key, Channel channel, Str version);
// An entry's own channel: email when it names none.
Channel template_channel(int channel);
