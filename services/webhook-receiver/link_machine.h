// SPDX-License-Identifier: Apache-2.0
// Who followed a tracked link or loaded the pixel: a recipient, or a scanner, a proxy or a preview?
// By what it says of itself, how soon it came after the mail was due, and how many links of one
// mail are followed at once. A guess: a machine that behaves like a recipient counts as one. Pure;
// time is an argument.
#pragma once

#include "common/base/str.h"

typedef struct LinkVisit {
    Str method;
    Str user_agent;
    Str purpose;    // of Sec-Purpose, Purpose or X-Moz: "prefetch"
    int64_t age_us; // since the mail was due
} LinkVisit;

// soon_us: what comes earlier than that after the mail was due is a machine; 0: it says nothing.
bool link_visit_is_machine(const LinkVisit *visit, int64_t soon_us);

// The links of one mail that were followed within LINK_BURST_US, for the latest LINK_BURSTS mails:
// the third different one and those after it are a scanner's.
enum { LINK_BURSTS = 4096, LINK_BURST_LINKS = 3, LINK_BURST_US = 2000000 };

typedef struct LinkBurst {
    uint64_t mail; // a hash of its id
    int64_t began_us;
    uint32_t links[LINK_BURST_LINKS]; // different ones; 0: none yet
} LinkBurst;

typedef struct LinkBursts {
    LinkBurst at[LINK_BURSTS];
} LinkBursts;

// Notes the click; true: it is one of many at once.
bool link_bursts_note(LinkBursts *bursts, Str notification_id, uint32_t link, int64_t now_us);
