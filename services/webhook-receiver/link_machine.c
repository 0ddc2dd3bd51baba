// SPDX-License-Identifier: Apache-2.0
#include "services/webhook-receiver/link_machine.h"

// Parts of what scanners, proxies of mailboxes and programs call themselves, in lower case. Names
// of vendors where they publish them; the others are what HTTP libraries send.
static const char *const AGENTS[] = {
    "googleimageproxy",
    "ggpht.com",
    "yahoomailproxy",
    "yahooexternalcache",
    "bingpreview",
    "bot",
    "crawler",
    "spider",
    "scanner",
    "preview",
    "barracuda",
    "mimecast",
    "proofpoint",
    "safelinks",
    "symantec",
    "trendmicro",
    "forcepoint",
    "fireeye",
    "ironport",
    "sophos",
    "headless",
    "phantomjs",
    "curl/",
    "wget/",
    "python",
    "go-http-client",
    "java/",
    "okhttp",
    "libwww",
    "axios",
    "node-fetch",
    "facebookexternalhit",
};

// Apple's Mail Privacy Protection says "Mozilla/5.0" and no more.
static bool is_machine_agent(Str agent)
{
    Str name = str_trim(agent);
    if (name.len == 0 || str_eq(name, STR("Mozilla/5.0"))) {
        return true;
    }
    for (size_t i = 0; i < sizeof AGENTS / sizeof *AGENTS; i++) {
        if (str_contains_nocase(name, str_from(AGENTS[i]))) {
            return true;
        }
    }
    return false;
}

bool link_visit_is_machine(const LinkVisit *visit, int64_t soon_us)
{
    return !str_eq(visit->method, STR("GET")) ||
           str_contains_nocase(visit->purpose, STR("prefetch")) || visit->age_us < soon_us ||
           is_machine_agent(visit->user_agent);
}

bool link_bursts_note(LinkBursts *bursts, Str notification_id, uint32_t link, int64_t now_us)
{
    uint64_t mail = str_hash(notification_id);
    LinkBurst *burst = &bursts->at[mail % LINK_BURSTS];
    int64_t span_us = now_us - burst->began_us;
    if (burst->mail != mail || span_us > LINK_BURST_US || span_us < 0) {
        *burst = (LinkBurst){.mail = mail, .began_us = now_us};
    }
    size_t at = 0;
    while (at < LINK_BURST_LINKS && burst->links[at] != 0 && burst->links[at] != link) {
        at++;
    }
    if (at < LINK_BURST_LINKS) {
        burst->links[at] = link;
    }
    return at + 1 >= LINK_BURST_LINKS;
}
