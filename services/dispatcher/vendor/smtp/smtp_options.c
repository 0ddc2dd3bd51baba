// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/vendor/smtp/smtp_options.h"

#include "common/base/id.h"

static bool percent_decode(Str text, char *out, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < text.len; i++, used++) {
        uint8_t c = (uint8_t)text.ptr[i];
        if (c == '%') {
            size_t len = 0;
            if (!hex_decode(str_slice(text, i + 1, i + 3), &c, 1, &len) || len != 1) {
                return false;
            }
            i += 2;
        }
        if (used + 1 >= size || c < 0x20 || c == 0x7f) {
            return false;
        }
        out[used] = (char)c;
    }
    out[used] = '\0';
    return true;
}

static bool parse_login(Str login, SmtpOptions *options, Error *err)
{
    ptrdiff_t colon = str_find(login, ':');
    Str user = colon < 0 ? login : str_slice(login, 0, (size_t)colon);
    Str password = colon < 0 ? STR_EMPTY : str_slice(login, (size_t)colon + 1, login.len);
    if (!percent_decode(user, options->user, sizeof options->user) ||
        !percent_decode(password, options->password, sizeof options->password)) {
        return error_set(
            err, ERROR_CONFIG,
            "STENTOR_SMTP_URL: user and password must be percent-encoded and at most %d bytes",
            (int)SMTP_CREDENTIAL_MAX);
    }
    return true;
}

static bool is_host(Str host)
{
    for (size_t i = 0; i < host.len; i++) {
        char c = host.ptr[i];
        bool alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!alnum && c != '.' && c != '-' && c != '_' && c != ':') {
            return false;
        }
    }
    return host.len > 0;
}

static bool parse_host(Str text, SmtpOptions *options, Error *err)
{
    Str host = text;
    Str port = options->implicit_tls ? STR("465") : STR("25");
    bool bracketed = str_starts(text, STR("[")); // [::1]:25
    ptrdiff_t close = bracketed ? str_find(text, ']') : -1;
    Str tail = close < 0 ? text : str_slice(text, (size_t)close + 1, text.len);
    ptrdiff_t colon = str_find(tail, ':');
    if (colon >= 0) {
        port = str_slice(tail, (size_t)colon + 1, tail.len);
        host = str_slice(tail, 0, (size_t)colon);
    }
    if (close >= 0) {
        host = str_slice(text, 1, (size_t)close);
    }
    int64_t number = 0;
    if (!str_to_i64(port, &number) || number < 1 || number > 65535 ||
        !str_to_c(port, options->port, sizeof options->port)) {
        return error_set(
            err, ERROR_CONFIG, "STENTOR_SMTP_URL: the port is not a number from 1 to 65535");
    }
    if ((bracketed && close < 0) || !is_host(host) ||
        !str_to_c(host, options->host, sizeof options->host)) {
        return error_set(err, ERROR_CONFIG, "STENTOR_SMTP_URL: the host is missing or malformed");
    }
    return true;
}

bool smtp_url_parse(Str url, SmtpOptions *ret, Error *err)
{
    bool smtps = str_starts(url, STR("smtps://"));
    if (!smtps && !str_starts(url, STR("smtp://"))) {
        return error_set(
            err, ERROR_CONFIG, "STENTOR_SMTP_URL: expected smtp://host:port or smtps://host:port");
    }
    Str rest = str_slice(url, smtps ? 8 : 7, url.len);
    if (str_ends(rest, STR("/"))) {
        rest.len--;
    }
    ret->implicit_tls = smtps;
    ret->user[0] = '\0';
    ret->password[0] = '\0';
    ptrdiff_t at = str_find(rest, '@');
    if (at >= 0) {
        if (!parse_login(str_slice(rest, 0, (size_t)at), ret, err)) {
            return false;
        }
        rest = str_slice(rest, (size_t)at + 1, rest.len);
    }
    return parse_host(rest, ret, err);
}

static bool find_mode(Str text, SmtpOptions *options)
{
    static const struct {
        const char *word;
        SmtpTlsMode mode;
    } words[] = {
        {"off", SMTP_TLS_OFF},
        {"opportunistic", SMTP_TLS_OPPORTUNISTIC},
        {"required", SMTP_TLS_REQUIRED},
        {"insecure-unverified", SMTP_TLS_UNVERIFIED},
        {"insecure-plaintext", SMTP_TLS_PLAINTEXT},
    };
    if (str_eq(text, STR("auto"))) {
        options->tls = options->user[0] != '\0' ? SMTP_TLS_REQUIRED : SMTP_TLS_OPPORTUNISTIC;
        return true;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (str_eq(text, str_from(words[i].word))) {
            options->tls = words[i].mode;
            return true;
        }
    }
    return false;
}

bool smtp_tls_mode_parse(Str text, SmtpOptions *options, Error *err)
{
    if (!find_mode(text, options)) {
        return error_set(
            err, ERROR_CONFIG,
            "STENTOR_SMTP_TLS is '" STR_FMT "': expected auto, off, opportunistic, required, "
            "insecure-unverified or insecure-plaintext",
            STR_ARG(str_slice(text, 0, 40)));
    }
    bool never = options->tls == SMTP_TLS_OFF || options->tls == SMTP_TLS_PLAINTEXT;
    if (options->implicit_tls && never) {
        return error_set(
            err, ERROR_CONFIG,
            "STENTOR_SMTP_TLS is '" STR_FMT "', which contradicts smtps:// in STENTOR_SMTP_URL",
            STR_ARG(text));
    }
    if (options->implicit_tls && options->tls == SMTP_TLS_OPPORTUNISTIC) {
        options->tls = SMTP_TLS_REQUIRED;
    }
    bool unprotected = options->tls == SMTP_TLS_OFF || options->tls == SMTP_TLS_OPPORTUNISTIC;
    if (options->user[0] != '\0' && unprotected) {
        return error_set(
            err, ERROR_CONFIG,
            "STENTOR_SMTP_TLS is '" STR_FMT "', and STENTOR_SMTP_URL has a user, whose password "
            "could be read on the way (HINT: STENTOR_SMTP_TLS=required, with "
            "STENTOR_SMTP_CA_FILE for a private certificate)",
            STR_ARG(text));
    }
    return true;
}
