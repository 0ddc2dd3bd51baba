// SPDX-License-Identifier: Apache-2.0
#include "common/model/rules/mail_provider.h"

enum {
    PROVIDER_GMAIL_COM,
    PROVIDER_OUTLOOK_COM,
    PROVIDER_YAHOO_COM,
    PROVIDER_ICLOUD_COM,
    PROVIDER_GMX_NET,
    PROVIDER_T_ONLINE_DE,
    PROVIDER_PROTON_ME,
    PROVIDER_MAIL_RU,
    PROVIDER_YANDEX_RU,
    PROVIDER_QQ_COM,
    PROVIDER_163_COM,
    PROVIDER_ORANGE_FR,
    PROVIDER_COMCAST_NET,
    PROVIDER_OTHER,
};

// clang-format off
static const char *const names[] = {
    [PROVIDER_GMAIL_COM] = "gmail.com",
    [PROVIDER_OUTLOOK_COM] = "outlook.com",
    [PROVIDER_YAHOO_COM] = "yahoo.com",
    [PROVIDER_ICLOUD_COM] = "icloud.com",
    [PROVIDER_GMX_NET] = "gmx.net",
    [PROVIDER_T_ONLINE_DE] = "t-online.de",
    [PROVIDER_PROTON_ME] = "proton.me",
    [PROVIDER_MAIL_RU] = "mail.ru",
    [PROVIDER_YANDEX_RU] = "yandex.ru",
    [PROVIDER_QQ_COM] = "qq.com",
    [PROVIDER_163_COM] = "163.com",
    [PROVIDER_ORANGE_FR] = "orange.fr",
    [PROVIDER_COMCAST_NET] = "comcast.net",
    [PROVIDER_OTHER] = MAIL_PROVIDER_OTHER,
};

static const struct {
    const char *domain;
    size_t provider; // in names
} rows[] = {
    {"gmail.com", PROVIDER_GMAIL_COM}, {"googlemail.com", PROVIDER_GMAIL_COM},
    {"outlook.com", PROVIDER_OUTLOOK_COM}, {"hotmail.com", PROVIDER_OUTLOOK_COM}, {"live.com", PROVIDER_OUTLOOK_COM}, {"msn.com", PROVIDER_OUTLOOK_COM},
    {"outlook.de", PROVIDER_OUTLOOK_COM}, {"outlook.fr", PROVIDER_OUTLOOK_COM}, {"outlook.es", PROVIDER_OUTLOOK_COM}, {"outlook.it", PROVIDER_OUTLOOK_COM},
    {"hotmail.de", PROVIDER_OUTLOOK_COM}, {"hotmail.fr", PROVIDER_OUTLOOK_COM}, {"hotmail.es", PROVIDER_OUTLOOK_COM}, {"hotmail.it", PROVIDER_OUTLOOK_COM},
    {"hotmail.co.uk", PROVIDER_OUTLOOK_COM}, {"live.de", PROVIDER_OUTLOOK_COM}, {"live.fr", PROVIDER_OUTLOOK_COM}, {"live.nl", PROVIDER_OUTLOOK_COM},
    {"live.co.uk", PROVIDER_OUTLOOK_COM},
    {"yahoo.com", PROVIDER_YAHOO_COM}, {"ymail.com", PROVIDER_YAHOO_COM}, {"rocketmail.com", PROVIDER_YAHOO_COM}, {"aol.com", PROVIDER_YAHOO_COM},
    {"yahoo.de", PROVIDER_YAHOO_COM}, {"yahoo.fr", PROVIDER_YAHOO_COM}, {"yahoo.es", PROVIDER_YAHOO_COM}, {"yahoo.it", PROVIDER_YAHOO_COM},
    {"yahoo.co.uk", PROVIDER_YAHOO_COM}, {"yahoo.co.in", PROVIDER_YAHOO_COM}, {"yahoo.com.br", PROVIDER_YAHOO_COM}, {"aol.de", PROVIDER_YAHOO_COM},
    {"icloud.com", PROVIDER_ICLOUD_COM}, {"me.com", PROVIDER_ICLOUD_COM}, {"mac.com", PROVIDER_ICLOUD_COM},
    {"gmx.de", PROVIDER_GMX_NET}, {"gmx.net", PROVIDER_GMX_NET}, {"gmx.at", PROVIDER_GMX_NET}, {"gmx.ch", PROVIDER_GMX_NET}, {"gmx.com", PROVIDER_GMX_NET},
    {"web.de", PROVIDER_GMX_NET}, {"mail.com", PROVIDER_GMX_NET},
    {"t-online.de", PROVIDER_T_ONLINE_DE}, {"magenta.de", PROVIDER_T_ONLINE_DE},
    {"proton.me", PROVIDER_PROTON_ME}, {"protonmail.com", PROVIDER_PROTON_ME}, {"pm.me", PROVIDER_PROTON_ME},
    {"mail.ru", PROVIDER_MAIL_RU}, {"bk.ru", PROVIDER_MAIL_RU}, {"inbox.ru", PROVIDER_MAIL_RU}, {"list.ru", PROVIDER_MAIL_RU},
    {"yandex.ru", PROVIDER_YANDEX_RU}, {"yandex.com", PROVIDER_YANDEX_RU}, {"ya.ru", PROVIDER_YANDEX_RU},
    {"qq.com", PROVIDER_QQ_COM}, {"foxmail.com", PROVIDER_QQ_COM},
    {"163.com", PROVIDER_163_COM}, {"126.com", PROVIDER_163_COM},
    {"orange.fr", PROVIDER_ORANGE_FR}, {"wanadoo.fr", PROVIDER_ORANGE_FR},
    {"comcast.net", PROVIDER_COMCAST_NET},
};
// clang-format on

const char *mail_provider_name(size_t at)
{
    return at < sizeof names / sizeof *names ? names[at] : NULL;
}

Str mail_domain_of(Str address)
{
    for (size_t at = address.len; at > 0; at--) {
        if (address.ptr[at - 1] == '@') {
            return str_slice(address, at, address.len);
        }
    }
    return STR_EMPTY;
}

Str mail_provider(Str address)
{
    Str domain = mail_domain_of(address);
    if (domain.len == 0) {
        return STR_EMPTY;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (str_eq_nocase(domain, str_from(rows[i].domain))) {
            return str_from(names[rows[i].provider]);
        }
    }
    return STR(MAIL_PROVIDER_OTHER);
}
