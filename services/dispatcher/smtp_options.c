// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/smtp_options.h"

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

bool smtp_tls_mode_parse(Str text, SmtpOptions *options, Error *err)
{
    if (str_eq(text, STR("off"))) {
        options->tls = SMTP_TLS_OFF;
    } else if (str_eq(text, STR("opportunistic"))) {
        options->tls = SMTP_TLS_OPPORTUNISTIC;
    } else if (str_eq(text, STR("required"))) {
        options->tls = SMTP_TLS_REQUIRED;
    } else {
        return error_set(
            err, ERROR_CONFIG,
            "STENTOR_SMTP_TLS is '" STR_FMT "': expected off, opportunistic or required",
            STR_ARG(text));
    }
    if (options->implicit_tls && options->tls == SMTP_TLS_OFF) {
        return error_set(
            err, ERROR_CONFIG, "STENTOR_SMTP_TLS is 'off', and STENTOR_SMTP_URL is smtps://");
    }
    if (options->implicit_tls) {
        options->tls = SMTP_TLS_REQUIRED;
    }
    return true;
}
