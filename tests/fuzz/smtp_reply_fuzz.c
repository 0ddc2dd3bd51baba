// SPDX-License-Identifier: Apache-2.0
// links: svc_dispatcher
// A server's bytes, cut at every place that the first byte says: never a crash, and everything
// handed on is bounded.
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "services/dispatcher/vendor/smtp/smtp_reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at(const SmtpReply *reply)
{
    assert(reply->code >= 200 && reply->code <= 599);
    assert(reply->text_len <= SMTP_TEXT_MAX && strlen(reply->enhanced) < SMTP_ENHANCED_SIZE);
    char text[512];
    smtp_reply_clean(reply, text, sizeof text);
    assert(str_is_utf8(str_from(text)) && !str_has_control(str_from(text)));
    (void)smtp_caps_parse(reply);
    (void)smtp_classify(reply->code, str_from(reply->enhanced));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    SmtpReplyParser parser;
    smtp_reply_init(&parser);
    Str rest = {(const char *)data + 1, size - 1};
    size_t piece = data[0] == 0 ? rest.len : data[0];
    while (rest.len > 0) {
        Str input = str_slice(rest, 0, piece);
        rest = str_slice(rest, input.len, rest.len);
        while (input.len > 0) {
            Error err = {0};
            SmtpFeed fed = smtp_reply_feed(&parser, &input, &err);
            if (fed == SMTP_FEED_BAD) {
                assert(err.kind == ERROR_TRANSIENT);
                return 0;
            }
            if (fed == SMTP_FEED_REPLY) {
                look_at(&parser.reply);
            }
        }
    }
    return 0;
}
