// SPDX-License-Identifier: Apache-2.0
// Where the SMTP server is and how to speak with it: the checked form of the service's SMTP
// options.
#pragma once

#include "common/base/error.h"
#include "common/base/str.h"

typedef enum SmtpTlsMode {
    SMTP_TLS_OFF,           // never; no password
    SMTP_TLS_OPPORTUNISTIC, // when the server offers it, without looking at the certificate; no
                            // password
    SMTP_TLS_REQUIRED,      // always, with a certificate for the host's name
    SMTP_TLS_UNVERIFIED,    // always, with any certificate; the password goes to any server
    SMTP_TLS_PLAINTEXT,     // never, and the password goes in the clear
} SmtpTlsMode;

enum { SMTP_CONNECTIONS_MAX = 64, SMTP_CREDENTIAL_MAX = 255 };

typedef struct SmtpOptions {
    char host[256];
    char port[6];
    bool implicit_tls; // smtps://
    SmtpTlsMode tls;
    char user[SMTP_CREDENTIAL_MAX + 1]; // empty: no AUTH
    char password[SMTP_CREDENTIAL_MAX + 1];
    const char *ca_file; // "": the system's
    const char *helo;    // our name in EHLO
    unsigned connections;
    unsigned mails_max; // of one connection; then QUIT
    // Of a lane's connections one tenant may hold so many, and at least one, while others send too.
    unsigned tenant_percent;
    // RFC 5321 4.5.3.2, scaled down: a relay answers sooner.
    unsigned connect_ms, command_ms, data_ms, idle_ms;
} SmtpOptions;

// "smtp://user:pass@host:port" (percent-encoded; port 25, with smtps 465) into host, port,
// implicit_tls, user, password. ERROR_CONFIG names what is wrong without repeating the password.
bool smtp_url_parse(Str url, SmtpOptions *ret, Error *err);
// "auto", "off", "opportunistic", "required", "insecure-unverified", "insecure-plaintext"; after
// smtp_url_parse(), for auto is required with a user or smtps://, else opportunistic. ERROR_CONFIG
// for any other value, for smtps:// without TLS, and for a user whose password the mode does not
// protect: only the last two modes permit that.
bool smtp_tls_mode_parse(Str text, SmtpOptions *options, Error *err);
