// SPDX-License-Identifier: Apache-2.0
#include "common/model/template_key.h"

#include <string.h>

bool template_key_parse(Str text, TemplateKey *ret)
{
    TemplateKey found = {.channel = CHANNEL_NONE};
    Str rest = text;
    (void)str_split(&rest, '.', &found.key);
    found.version = rest;
    Str word = STR_EMPTY;
    if (str_split(&rest, '.', &word) && rest.len > 0) {
        if (!channel_from_name(word, &found.channel)) {
            return false;
        }
        found.version = rest;
    }
    if (found.key.len == 0 || found.version.len == 0 ||
        memchr(found.version.ptr, '.', found.version.len) != NULL) {
        return false;
    }
    *ret = found;
    return true;
}

Str template_key_write(char out[TEMPLATE_KEY_SIZE], Str key, Channel channel, Str version)
{
    Str word = str_from(channel_name(channel));
    size_t len = key.len + 1 + word.len + (word.len > 0 ? 1 : 0) + version.len;
    if (len >= TEMPLATE_KEY_SIZE) {
        return STR_EMPTY;
    }
    char *at = out;
    memcpy(at, key.ptr, key.len);
    at += key.len;
    *at++ = '.';
    if (word.len > 0) {
        memcpy(at, word.ptr, word.len);
        at += word.len;
        *at++ = '.';
    }
    for (size_t i = 0; i < version.len; i++) {
        *at++ = version.ptr[i] == '.' ? '_' : version.ptr[i];
    }
    *at = '\0';
    return str_of(out, len);
}

Channel template_channel(int channel)
{
    return channel == CHANNEL_NONE ? CHANNEL_EMAIL : (Channel)channel;
}
