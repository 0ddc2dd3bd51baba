// SPDX-License-Identifier: Apache-2.0
// Tracked links: in the html of a finished mail, href of <a> and <area> leads through our own
// address, which records the click and redirects; a pixel at its end records the open. Only http
// and https links; never a link of ours (unsubscribe, preferences), one with clicktracking="off",
// or one in a comment, a script or a style. Law: tracking never makes a mail fail and never changes
// anything else in it: what does not fit stays as it is. Pure.
#pragma once

#include "common/base/buf.h"
#include "common/codec/mail_link.h"

enum {
    TRACKING_HTML_MAX = 512 * 1024,  // a larger mail is not tracked: it must still fit its event
    TRACKING_ADDED_MAX = 128 * 1024, // by all links together; those behind stay as they are
    TRACKING_LINKS_MAX = 1000,
};

typedef struct Tracking {
    const MailLinkKey *key;
    Str url; // what tracked links begin with, without a '/' at its end
    Str tenant;
    Str notification_id;
    const uint8_t *who;   // MAIL_LINK_WHO_LEN bytes of the address hash; NULL: none is known
    int64_t issued_at_us; // of the request, so that a second rendering makes the same mail
    bool clicks;
    bool opens;
    const Str *untouched; // links that stay as they are, and those that begin with one of them
    size_t untouched_count;
} Tracking;

// The number of links that are tracked now, the pixel among them.
size_t tracking_apply(const Tracking *tracking, Buf *html);
