// SPDX-License-Identifier: Apache-2.0
// doctor --domain: what mailbox providers demand of a domain that sends (Gmail and Yahoo since
// 2024, Microsoft since 2025), asked of DNS; each line has the rule that is broken and the remedy.
// What CONFIG says of the domain (its DKIM selectors and keys, where bounces come back to) is
// compared where it can be read.
#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

#include "common/codec/event.h"
#include "services/cli/api_client.h"
#include "services/cli/doctor/doctor.h"
#include "services/cli/doctor/spf_check.h"
#include "services/cli/vendors/secret_here.h"
#include "stentor/v1/config.pb-c.h"

enum { SELECTORS_MAX = 16, RSA_BITS_MIN = 1024, RSA_BITS_WANTED = 2048 };

typedef struct DomainCheck {
    Doctor *doctor;
    Dns *dns;
    Arena *arena;
    const char *domain;
    const Stentor__V1__MailDomain *entry; // NULL: none, or CONFIG was not read
} DomainCheck;

// ---- CONFIG ----

// A domain is looked at without an installation, too: then the entry is missing.
static void read_entry(DomainCheck *check)
{
    Cli *cli = check->doctor->cli;
    Error err = {0};
    BusMessage message = {0};
    bool found = false;
    MessageQuery query = {
        .stream = "CONFIG",
        .last_of = arena_printf(
            check->arena, "cfg.mail_domain.%s.%s", cli->settings.tenant, check->domain),
    };
    if (cli->settings.session.nats_url[0] == '\0' ||
        !session_open(&check->doctor->session, &cli->settings.session, &err)) {
        doctor_say(
            check->doctor, "configuration", CHECK_WARN,
            "not read: keys are not compared with DNS (HINT: STENTOR_NATS_URL)");
        return;
    }
    bool ok =
        session_get_message(&check->doctor->session, &query, check->arena, &message, &found, &err);
    if (ok && found && message.payload.len > 0) {
        check->entry = (const Stentor__V1__MailDomain *)event_unpack(
            &stentor__v1__mail_domain__descriptor, message.payload, check->arena, &err);
    }
    session_close(&check->doctor->session);
    if (check->entry == NULL) {
        doctor_say(
            check->doctor, "configuration", ok ? CHECK_OK : CHECK_WARN,
            ok ? "the tenant has no settings for this domain"
               : arena_cstr(check->arena, str_from(err.text)));
    }
}

// ---- SPF ----

static const char *word_of(SpfResult result)
{
    switch (result) {
    case SPF_NONE:
        return "none";
    case SPF_PASS:
        return "pass";
    case SPF_FAIL:
        return "fail";
    case SPF_SOFTFAIL:
        return "softfail";
    case SPF_NEUTRAL:
        return "neutral";
    case SPF_PERMERROR:
        return "permerror";
    case SPF_TEMPERROR:
        return "temperror";
    }
    return "";
}

static void say_spf(const DomainCheck *check, const char *domain, const char *address)
{
    SpfCheck spf = {.dns = check->dns, .arena = check->arena, .address = address};
    SpfResult result = spf_check(&spf, domain);
    const char *text = NULL;
    if (result == SPF_NONE) {
        text = arena_printf(
            check->arena,
            "'%s' has no SPF record: Gmail, Yahoo and Microsoft demand one (HINT: a TXT record "
            "\"v=spf1 ip4:<your server> -all\", or your provider's include)",
            domain);
    } else if (result == SPF_PERMERROR || result == SPF_TEMPERROR) {
        text = arena_printf(
            check->arena, "%s: %s", result == SPF_PERMERROR ? "RFC 7208, permerror" : "DNS",
            spf.fault);
    } else if (spf.takes_all) {
        text = "it ends in +all: anyone may send as this domain (HINT: -all or ~all)";
    } else if (address != NULL && result != SPF_PASS) {
        text = arena_printf(
            check->arena, "%s may not send: %s (HINT: add ip%s:%s to the SPF record of '%s')",
            address, word_of(result), strchr(address, ':') != NULL ? "6" : "4", address, domain);
    }
    doctor_say(
        check->doctor, arena_printf(check->arena, "spf %s", domain),
        text != NULL ? CHECK_FAIL : CHECK_OK,
        text != NULL ? text
                     : arena_printf(
                           check->arena, "%s%s%d of 10 look-ups: " STR_FMT,
                           address != NULL ? address : "", address != NULL ? " may send, " : "",
                           spf.lookups, STR_ARG(str_slice(spf.record, 0, 300))));
}

static void check_spf(const DomainCheck *check, const char *domain)
{
    const char *address;
    bool any = false;
    for (int i = 0; (address = args_each(&check->doctor->cli->args, "ip", &i)) != NULL;) {
        say_spf(check, domain, address);
        any = true;
    }
    if (!any) {
        say_spf(check, domain, NULL);
    }
}

// ---- DKIM ----

// What is published under the selector; false: said.
static bool find_dkim(
    const DomainCheck *check, const char *name, const char *label, DkimRecord *ret)
{
    DnsAnswer answer;
    Error err = {0};
    DnsResult result = dns_ask(check->dns, name, DNS_TXT, check->arena, &answer, &err);
    const char *text = NULL;
    if (result == DNS_FAILED) {
        text = arena_cstr(check->arena, str_from(err.text));
    } else if (result == DNS_NONE) {
        text = arena_printf(
            check->arena,
            "'%s' has no TXT record: mails are not signed for a receiver (HINT: publish "
            "\"v=DKIM1; k=rsa; p=<public key>\")",
            name);
    } else if (answer.count > 1) {
        text = arena_printf(
            check->arena, "'%s' has %zu TXT records, one is allowed (RFC 6376)", name,
            answer.count);
    } else if (!dkim_record_read(answer.records[0].text, check->arena, ret, &err)) {
        text = arena_printf(check->arena, "the record of '%s' is broken: %s", name, err.text);
    }
    if (text != NULL) {
        doctor_say(check->doctor, label, CHECK_FAIL, text);
    }
    return text == NULL;
}

static void say_dkim(const DomainCheck *check, const char *selector, const char *reference)
{
    const char *name = arena_printf(check->arena, "%s._domainkey.%s", selector, check->domain);
    const char *label = arena_printf(check->arena, "dkim %s", selector);
    DkimRecord record;
    Str pem = STR_EMPTY;
    Str ours = STR_EMPTY;
    Error err = {0};
    if (!find_dkim(check, name, label, &record)) {
        return;
    }
    bool is_file = strncmp(reference, "file:", 5) == 0;
    bool read = is_file && secret_here(check->doctor->cli, str_from(reference), &pem, &err) &&
                dkim_public_of(pem, check->arena, &ours, &err);
    if (read && !str_eq(ours, record.key)) {
        doctor_say(
            check->doctor, label, CHECK_FAIL,
            arena_printf(
                check->arena,
                "the key in DNS is not that of %s: receivers refuse the signature (HINT: publish "
                "p=" STR_FMT ")",
                reference, STR_ARG(ours)));
    } else if (!record.ed25519 && record.bits < RSA_BITS_MIN) {
        doctor_say(
            check->doctor, label, CHECK_FAIL,
            arena_printf(
                check->arena, "an RSA key of %d bits: receivers pass over it (RFC 8301: 1024)",
                record.bits));
    } else {
        bool weak = (!record.ed25519 && record.bits < RSA_BITS_WANTED) || record.testing;
        doctor_say(
            check->doctor, label, weak || (is_file && !read) ? CHECK_WARN : CHECK_OK,
            arena_printf(
                check->arena, "%s%s%s, %s",
                record.ed25519 ? "Ed25519"
                               : arena_printf(check->arena, "RSA of %d bits", record.bits),
                weak && !record.testing ? " (HINT: 2048)" : "",
                record.testing ? ", t=y: receivers may pass over it (HINT: take t=y away)" : "",
                read      ? "ours"
                : is_file ? err.text
                          : "not compared with a key of ours"));
    }
}

static void check_dkim(const DomainCheck *check)
{
    const char *selector;
    size_t count = 0;
    for (size_t i = 0; check->entry != NULL && i < check->entry->n_dkim && i < SELECTORS_MAX; i++) {
        say_dkim(check, check->entry->dkim[i]->selector, check->entry->dkim[i]->reference);
        count++;
    }
    for (int i = 0; (selector = args_each(&check->doctor->cli->args, "selector", &i)) != NULL;) {
        say_dkim(check, selector, "");
        count++;
    }
    if (count == 0) {
        doctor_say(
            check->doctor, "dkim", CHECK_WARN,
            "not checked: no selector is known (HINT: --selector NAME, or the domain's DKIM key in "
            "Stentor)");
    }
}

// ---- DMARC ----

// Of the domain, else of the one above it.
static bool find_dmarc(const DomainCheck *check, Str *ret, Str *ret_domain, DnsResult *ret_result)
{
    DnsAnswer answer;
    Error err = {0};
    for (Str at = str_from(check->domain); at.len > 0; at = domain_parent(at)) {
        const char *name = arena_printf(check->arena, "_dmarc." STR_FMT, STR_ARG(at));
        *ret_result = dns_ask(check->dns, name, DNS_TXT, check->arena, &answer, &err);
        for (size_t i = 0; i < answer.count; i++) {
            if (str_starts(answer.records[i].text, STR("v=DMARC1"))) {
                *ret = answer.records[i].text;
                *ret_domain = at;
                return true;
            }
        }
        if (*ret_result == DNS_FAILED) {
            return false;
        }
    }
    return false;
}

static void check_dmarc(const DomainCheck *check)
{
    Str record = STR_EMPTY;
    Str domain = STR_EMPTY;
    Str policy = STR_EMPTY;
    Str reports = STR_EMPTY;
    DnsResult result = DNS_NONE;
    if (!find_dmarc(check, &record, &domain, &result)) {
        doctor_say(
            check->doctor, "dmarc", CHECK_FAIL,
            result == DNS_FAILED
                ? "no DNS server answered"
                : arena_printf(
                      check->arena,
                      "no record: Gmail and Yahoo demand one of who sends 5,000 mails a day, "
                      "Microsoft too (HINT: _dmarc.%s TXT \"v=DMARC1; p=none; rua=mailto:...\")",
                      check->domain));
        return;
    }
    bool named = tag_value(record, "p", &policy);
    bool known = str_eq(policy, STR("none")) || str_eq(policy, STR("quarantine")) ||
                 str_eq(policy, STR("reject"));
    bool reported = tag_value(record, "rua", &reports) && reports.len > 0;
    doctor_say(
        check->doctor, "dmarc",
        !named || !known ? CHECK_FAIL
        : reported       ? CHECK_OK
                         : CHECK_WARN,
        !named || !known
            ? "its p= is none of none, quarantine and reject (RFC 7489): receivers pass over it"
            : arena_printf(
                  check->arena, "p=" STR_FMT " at " STR_FMT "%s", STR_ARG(policy), STR_ARG(domain),
                  reported ? "" : "; its reports go nowhere (HINT: rua=mailto:...)"));
}

// ---- MX and PTR ----

static void check_mx(const DomainCheck *check, const char *domain, const char *why)
{
    DnsAnswer answer;
    Error err = {0};
    const char *label = arena_printf(check->arena, "mx %s", domain);
    DnsResult result = dns_ask(check->dns, domain, DNS_MX, check->arena, &answer, &err);
    bool null_mx = result == DNS_FOUND && answer.count == 1 &&
                   (answer.records[0].text.len == 0 || str_eq(answer.records[0].text, STR(".")));
    if (result == DNS_FOUND && !null_mx) {
        doctor_say(
            check->doctor, label, CHECK_OK,
            arena_printf(
                check->arena, STR_FMT "%s", STR_ARG(str_slice(answer.records[0].text, 0, 200)),
                answer.count > 1 ? " and others" : ""));
        return;
    }
    doctor_say(
        check->doctor, label, CHECK_FAIL,
        result == DNS_FAILED
            ? arena_cstr(check->arena, str_from(err.text))
            : arena_printf(
                  check->arena, "%s: %s (HINT: an MX record)",
                  null_mx ? "a null MX (RFC 7505) says that it takes no mail" : "no MX record",
                  why));
}

static bool has_address(const DomainCheck *check, const char *host, const char *address)
{
    DnsAnswer answer;
    Error ignored = {0};
    DnsType type = strchr(address, ':') != NULL ? DNS_AAAA : DNS_A;
    (void)dns_ask(check->dns, host, type, check->arena, &answer, &ignored);
    for (size_t i = 0; i < answer.count; i++) {
        if (spf_network_has(answer.records[i].text, 32, 128, address)) {
            return true;
        }
    }
    return false;
}

static void say_ptr(const DomainCheck *check, const char *address)
{
    DnsAnswer answer;
    Error err = {0};
    const char *label = arena_printf(check->arena, "ptr %s", address);
    const char *name = dns_reverse_name(address, check->arena);
    DnsResult result = dns_ask(check->dns, name, DNS_PTR, check->arena, &answer, &err);
    if (result != DNS_FOUND) {
        doctor_say(
            check->doctor, label, CHECK_FAIL,
            result == DNS_FAILED
                ? arena_cstr(check->arena, str_from(err.text))
                : "no PTR record: Gmail refuses mail from such an address (HINT: ask the owner of "
                  "the network for one)");
        return;
    }
    const char *host = arena_cstr(check->arena, answer.records[0].text);
    bool back = has_address(check, host, address);
    doctor_say(
        check->doctor, label, back ? CHECK_OK : CHECK_FAIL,
        back ? host
             : arena_printf(
                   check->arena,
                   "its name '%.200s' does not lead back to the address (HINT: an A or AAAA record "
                   "of that name)",
                   host));
}

static void check_ptr(const DomainCheck *check)
{
    const char *address;
    bool any = false;
    for (int i = 0; (address = args_each(&check->doctor->cli->args, "ip", &i)) != NULL;) {
        say_ptr(check, address);
        any = true;
    }
    if (!any) {
        doctor_say(
            check->doctor, "ptr", CHECK_WARN,
            "not checked (HINT: --ip ADDRESS of the server that hands mails over; a vendor's is "
            "the vendor's)");
    }
}

// ---- one click ----

static size_t on_curl_body(char *data, size_t size, size_t count, void *ctx)
{
    (void)data, (void)ctx;
    return size * count;
}

// An unsubscribe link that no mail has is answered with 404 by Stentor itself.
static const char *trouble_of_link(const DomainCheck *check, const char *url)
{
    long status = 0;
    CURL *curl = curl_easy_init();
    api_client_trust(check->doctor->cli, curl);
    curl_easy_setopt(curl, CURLOPT_URL, arena_printf(check->arena, "%s/v1/opt-out/oot_x", url));
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_curl_body);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "https");
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, 10L);
    CURLcode code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_cleanup(curl);
    if (code != CURLE_OK) {
        return arena_printf(
            check->arena, "%s cannot be reached: %s (HINT: recipients must reach /v1/opt-out/)",
            url, curl_easy_strerror(code));
    }
    return status == 404 ? NULL
                         : arena_printf(
                               check->arena,
                               "%s answers %ld to an unknown unsubscribe link where 404 was "
                               "expected (HINT: /v1/opt-out/ must lead to webhook-receiver)",
                               url, status);
}

static void check_one_click(const DomainCheck *check)
{
    const char *url = args_flag(&check->doctor->cli->args, "public-url");
    if (url == NULL) {
        doctor_say(
            check->doctor, "one-click", CHECK_WARN,
            "not checked (HINT: --public-url, as STENTOR_RENDERER_PUBLIC_URL has it)");
        return;
    }
    bool https = strncmp(url, "https://", 8) == 0;
    const char *trouble =
        https ? trouble_of_link(check, url)
              : "it is no https:// URL, which RFC 8058 and Gmail demand of one-click unsubscribing";
    doctor_say(
        check->doctor, "one-click", trouble == NULL ? CHECK_OK : CHECK_FAIL,
        trouble == NULL ? "unsubscribe links can be reached over HTTPS" : trouble);
}

// ---- the command ----

static bool check_arguments(const DomainCheck *check, Error *err)
{
    const char *address;
    for (int i = 0; (address = args_each(&check->doctor->cli->args, "ip", &i)) != NULL;) {
        if (dns_reverse_name(address, check->arena) == NULL) {
            return error_set(err, ERROR_USAGE, "--ip: '%.60s' is no IP address", address);
        }
    }
    size_t len = strlen(check->domain);
    bool shaped = len > 2 && len <= DNS_NAME_MAX - 64 && strchr(check->domain, '.') != NULL &&
                  strchr(check->domain, '@') == NULL && strchr(check->domain, ' ') == NULL;
    return shaped || error_set(err, ERROR_USAGE, "--domain: expected a domain: example.com");
}

bool doctor_domain(Doctor *doctor, Error *err)
{
    DomainCheck check = {
        .doctor = doctor,
        .arena = doctor->cli->arena,
        .domain = args_flag(&doctor->cli->args, "domain"),
    };
    if (!check_arguments(&check, err)) {
        return false;
    }
    check.dns = dns_open(args_flag(&doctor->cli->args, "server"), err);
    if (check.dns == NULL) {
        return false;
    }
    read_entry(&check);
    check_spf(&check, check.domain);
    check_dkim(&check);
    check_dmarc(&check);
    check_mx(&check, check.domain, "replies and bounces do not arrive");
    if (check.entry != NULL && check.entry->bounce_domain[0] != '\0') {
        check_spf(&check, check.entry->bounce_domain);
        check_mx(&check, check.entry->bounce_domain, "bounces do not come back");
    }
    check_ptr(&check);
    check_one_click(&check);
    dns_close(check.dns);
    return true;
}
