// SPDX-License-Identifier: Apache-2.0
// links: svc_webhook_receiver
// A client's bytes, in pieces as the first byte says: never a crash, everything bounded, and the
// replies and mails are those of the same bytes in one piece.
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "common/base/buf.h"
#include "services/webhook-receiver/lmtp/lmtp_session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const LmtpLimits LIMITS = {.mail_max = 4000, .kept_max = 2000};
enum { HEARD_MAX = 64 * 1024 * 1024 };

static void decide(LmtpSession *s, LmtpStep step, Buf *mails)
{
    if (step == LMTP_RECIPIENT) {
        assert(s->address.len > 0 && s->address.len <= LMTP_ADDRESS_MAX);
        assert(!str_has_control(s->address) && str_is_utf8(s->address));
        bool good = s->address.ptr[0] != 'x';
        lmtp_recipient(s, good ? NULL : "550 5.1.1 no", NULL);
    } else if (step == LMTP_MAIL) {
        assert(s->recipient_count > 0 && s->recipient_count <= LMTP_RECIPIENTS_MAX);
        assert(s->mail.len <= LIMITS.kept_max && s->size <= LIMITS.mail_max);
        buf_str(mails, buf_view(&s->mail));
        for (size_t n = s->recipient_count; n > 0; n--) {
            lmtp_reply(s, "250 2.0.0 ok");
        }
    }
}

typedef struct Heard {
    Buf replies, mails;
} Heard;

static void run(Str rest, size_t piece, Heard *heard)
{
    LmtpSession session;
    lmtp_init(&session, "mx", &LIMITS);
    LmtpStep step = LMTP_MORE;
    while (rest.len > 0 && step != LMTP_END) {
        Str input = str_slice(rest, 0, piece);
        rest = str_slice(rest, input.len, rest.len);
        while (input.len > 0 && step != LMTP_END) {
            step = lmtp_feed(&session, &input);
            decide(&session, step, &heard->mails);
            assert(!session.out.full);
            buf_str(&heard->replies, buf_view(&session.out));
            buf_clear(&session.out);
        }
    }
    lmtp_done(&session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    Str bytes = str_of(data + 1, size - 1);
    Heard heard[2];
    for (int i = 0; i < 2; i++) {
        buf_init(&heard[i].replies, HEARD_MAX);
        buf_init(&heard[i].mails, HEARD_MAX);
        run(bytes, i == 0 ? bytes.len : (size_t)data[0] + 1, &heard[i]);
    }
    assert(str_eq(buf_view(&heard[0].replies), buf_view(&heard[1].replies)));
    assert(str_eq(buf_view(&heard[0].mails), buf_view(&heard[1].mails)));
    for (int i = 0; i < 2; i++) {
        buf_done(&heard[i].replies);
        buf_done(&heard[i].mails);
    }
    return 0;
}
