// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "common/base/buf.h"
#include "common/base/id.h"
#include "common/http/client/guard.h"
#include "common/routing/routes.h"
#include "common/vendor/generic/definition.h"
#include "common/vendor/vendor_api.h"

enum {
    DOMAIN_MAX = 253,
    SETTING_NAME_MAX = 32,
    SETTING_VALUE_MAX = 512,
    KNOWN_SETTINGS_MAX = 1024,
    SETTLE_MAX_MS = 3600000,
};

bool routing_is_vendor(Str vendor)
{
    return routing_vendor_channel(vendor) != CHANNEL_NONE;
}

Channel routing_vendor_channel(Str vendor)
{
    if (str_eq(vendor, STR(ROUTING_SMTP))) {
        return CHANNEL_EMAIL;
    }
    if (str_eq(vendor, STR(ROUTING_INAPP))) {
        return CHANNEL_INAPP;
    }
    const VendorApi *api = vendor_find(vendor);
    return api == NULL ? CHANNEL_NONE : api->channel;
}

bool routing_is_own(Str vendor)
{
    return str_eq(vendor, STR(ROUTING_SMTP)) || str_eq(vendor, STR(ROUTING_INAPP));
}

bool routing_is_name(Str name, size_t max)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        if (!((c >= 'a' && c <= 'z') || ascii_is_digit(c) || c == '_' || c == '-')) {
            return false;
        }
    }
    return name.len >= 1 && name.len <= max;
}

// "example.com", "*.example.com": lower case, letters, digits, '-', with a dot.
static bool is_domain(Str domain)
{
    Str rest = str_starts(domain, STR("*.")) ? str_slice(domain, 2, domain.len) : domain;
    Str label;
    size_t labels = 0;
    if (rest.len == 0 || rest.len > DOMAIN_MAX || str_ends(rest, STR("."))) {
        return false;
    }
    while (str_split(&rest, '.', &label)) {
        labels++;
        bool edges = label.len > 0 && label.len <= 63 && label.ptr[0] != '-' &&
                     label.ptr[label.len - 1] != '-';
        if (!edges) {
            return false;
        }
        for (size_t i = 0; i < label.len; i++) {
            char c = label.ptr[i];
            if (!((c >= 'a' && c <= 'z') || ascii_is_digit(c) || c == '-')) {
                return false;
            }
        }
    }
    return labels >= 2;
}

static bool is_country(Str country)
{
    return country.len == 2 && country.ptr[0] >= 'A' && country.ptr[0] <= 'Z' &&
           country.ptr[1] >= 'A' && country.ptr[1] <= 'Z';
}

static Channel channel_of(const RouteEntry *route)
{
    return route->channel == STENTOR__V1__CHANNEL__CHANNEL_UNSPECIFIED ? CHANNEL_EMAIL
                                                                       : (Channel)route->channel;
}

static bool check_vendor(const RouteEntry *route, size_t i, Error *err)
{
    const Stentor__V1__RouteVendor *step = route->vendors[i];
    Str vendor = str_from(step->vendor);
    if (!routing_is_vendor(vendor)) {
        return error_set(
            err, ERROR_PERMANENT,
            "vendors[%zu].vendor: '%.32s' is no vendor; 'stentor channel list' names them", i,
            step->vendor);
    }
    if (routing_vendor_channel(vendor) != channel_of(route)) {
        return error_set(
            err, ERROR_PERMANENT, "vendors[%zu].vendor: '%s' carries no %s", i, step->vendor,
            channel_name(channel_of(route)));
    }
    if (step->credential[0] != '\0' && str_eq(vendor, STR(ROUTING_SMTP))) {
        return error_set(
            err, ERROR_PERMANENT,
            "vendors[%zu].credential: smtp has none here; its password is the dispatcher's own", i);
    }
    if (step->credential[0] != '\0' && str_eq(vendor, STR(ROUTING_INAPP))) {
        return error_set(
            err, ERROR_PERMANENT, "vendors[%zu].credential: inapp has none; leave 'credential' out",
            i);
    }
    if (step->credential[0] != '\0' &&
        !routing_is_name(str_from(step->credential), CREDENTIAL_NAME_MAX)) {
        return error_set(
            err, ERROR_PERMANENT,
            "vendors[%zu].credential: not a credential's name: a-z, 0-9, '_', '-', at most %d", i,
            CREDENTIAL_NAME_MAX);
    }
    if (step->weight > 1000 || step->step >= ROUTE_VENDORS_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "vendors[%zu]: weight is 0 to 1000 and step 0 to %d", i,
            ROUTE_VENDORS_MAX - 1);
    }
    for (size_t k = 0; k < i; k++) {
        if (str_eq(str_from(route->vendors[k]->vendor), vendor) &&
            str_eq(str_from(route->vendors[k]->credential), str_from(step->credential))) {
            return error_set(
                err, ERROR_PERMANENT,
                "vendors[%zu]: the same vendor and credential as vendors[%zu]", i, k);
        }
    }
    return true;
}

static bool check_rules(const RouteEntry *route, Error *err)
{
    RoutingUnknown unknown = ROUTING_UNKNOWN_UNSAID;
    for (size_t i = 0; i < route->n_fallback_on; i++) {
        if (fallback_from_name(str_from(route->fallback_on[i])) == 0) {
            return error_set(
                err, ERROR_PERMANENT,
                "fallback_on: '%.32s' is none of unsent, retry, config, elsewhere, open, degraded",
                route->fallback_on[i]);
        }
    }
    if (!routing_unknown_from_name(str_from(route->unknown), &unknown)) {
        return error_set(
            err, ERROR_PERMANENT,
            "unknown: '%.32s' is none of park, resend, resend_or_failover, failover, count_as_sent",
            route->unknown);
    }
    if (route->max_vendors > ROUTE_VENDORS_MAX) {
        return error_set(err, ERROR_PERMANENT, "max_vendors: 1 to %d", ROUTE_VENDORS_MAX);
    }
    if (route->settle_ms > SETTLE_MAX_MS) {
        return error_set(err, ERROR_PERMANENT, "settle_ms: at most %d", SETTLE_MAX_MS);
    }
    return true;
}

bool route_check(const RouteEntry *route, Error *err)
{
    if (!routing_is_name(str_from(route->key), ROUTE_NAME_MAX)) {
        return error_set(
            err, ERROR_PERMANENT, "key: not a name: a-z, 0-9, '_', '-', at most %d",
            ROUTE_NAME_MAX);
    }
    if (channel_name(channel_of(route))[0] == '\0') {
        return error_set(err, ERROR_PERMANENT, "channel: not a channel");
    }
    if (route->domain[0] != '\0' && !is_domain(str_from(route->domain))) {
        return error_set(
            err, ERROR_PERMANENT,
            "domain: '%.64s' is not in lower case 'example.com' or '*.example.com'", route->domain);
    }
    if (route->country[0] != '\0' && !is_country(str_from(route->country))) {
        return error_set(
            err, ERROR_PERMANENT, "country: '%.8s' is not two capital letters such as 'DE'",
            route->country);
    }
    if (route->n_vendors == 0 || route->n_vendors > ROUTE_VENDORS_MAX) {
        return error_set(err, ERROR_PERMANENT, "vendors: required, 1 to %d", ROUTE_VENDORS_MAX);
    }
    for (size_t i = 0; i < route->n_vendors; i++) {
        if (!check_vendor(route, i, err)) {
            return false;
        }
    }
    return check_rules(route, err);
}

// ---- credentials ----

static bool has_setting(const CredentialEntry *credential, const char *name)
{
    for (size_t i = 0; i < credential->n_settings; i++) {
        if (str_eq(str_from(credential->settings[i]->name), str_from(name))) {
            return credential->settings[i]->value[0] != '\0';
        }
    }
    return false;
}

// A part of the address that the vendor is called at.
static bool is_host(Str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (!ascii_is_alnum(text.ptr[i]) && text.ptr[i] != '.' && text.ptr[i] != '-') {
            return false;
        }
    }
    return true;
}

// Where a secret may be sent at all; whether to this machine or inside the network is the
// dispatchers' to allow (STENTOR_VENDOR_ADDRESSES).
static bool check_target(const char *field, const char *url, Error *err)
{
    static const HttpGuard any = {.allow_private = true, .allow_loopback = true};
    GuardedUrl found;
    Error why = {0};
    return guard_url(&any, url, &found, &why) ||
           error_set(err, ERROR_PERMANENT, "%s: %s; a secret is not sent there", field, why.text);
}

static bool is_among(const char *const *names, const char *name)
{
    for (size_t i = 0; names != NULL && names[i] != NULL; i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

// "base_url, region, configuration_set"
static void list_settings(const VendorApi *api, Buf *out)
{
    const char *const *lists[] = {api->needs, api->settings};
    buf_printf(out, "base_url");
    for (size_t n = 0; n < 2; n++) {
        for (size_t i = 0; lists[n] != NULL && lists[n][i] != NULL; i++) {
            buf_printf(out, ", %s", lists[n][i]);
        }
    }
}

// A name that is misspelled, or another vendor's, would change nothing.
static bool check_setting_name(const CredentialEntry *credential, const char *name, Error *err)
{
    const VendorApi *api = vendor_find(str_from(credential->vendor));
    if (api == NULL || api->by_definition || strcmp(name, "base_url") == 0 ||
        is_among(api->needs, name) || is_among(api->settings, name)) {
        return true;
    }
    Buf known;
    buf_init(&known, KNOWN_SETTINGS_MAX);
    list_settings(api, &known);
    (void)error_set(
        err, ERROR_PERMANENT, "settings.%s: %s has no such setting; it has %s", name, api->name,
        buf_c(&known));
    buf_done(&known);
    return false;
}

static bool check_settings(const CredentialEntry *credential, Error *err)
{
    if (credential->n_settings > CREDENTIAL_SETTINGS_MAX) {
        return error_set(err, ERROR_PERMANENT, "settings: at most %d", CREDENTIAL_SETTINGS_MAX);
    }
    for (size_t i = 0; i < credential->n_settings; i++) {
        const Stentor__V1__VendorSetting *setting = credential->settings[i];
        if (!routing_is_name(str_from(setting->name), SETTING_NAME_MAX)) {
            return error_set(
                err, ERROR_PERMANENT, "settings: '%.32s' is not a name such as 'region'",
                setting->name);
        }
        Str value = str_from(setting->value);
        if (value.len > SETTING_VALUE_MAX || str_has_control(value)) {
            return error_set(
                err, ERROR_PERMANENT, "settings.%s: at most %d bytes on one line", setting->name,
                SETTING_VALUE_MAX);
        }
        if (!check_setting_name(credential, setting->name, err)) {
            return false;
        }
        bool host = str_eq(str_from(setting->name), STR("region")) ||
                    str_eq(str_from(setting->name), STR("domain"));
        if (host && !is_host(value)) {
            return error_set(
                err, ERROR_PERMANENT, "settings.%s: letters, digits, '.' and '-' only",
                setting->name);
        }
        if (strcmp(setting->name, "base_url") == 0 &&
            !check_target("settings.base_url", setting->value, err)) {
            return false;
        }
    }
    return true;
}

static bool check_needs(const CredentialEntry *credential, Error *err)
{
    const VendorApi *api = vendor_find(str_from(credential->vendor));
    if (api == NULL) {
        return true;
    }
    if (api->needs_id && credential->key_id[0] == '\0') {
        return error_set(
            err, ERROR_PERMANENT, "key_id: required for %s: the public half of its key", api->name);
    }
    for (size_t i = 0; api->needs != NULL && api->needs[i] != NULL; i++) {
        if (!has_setting(credential, api->needs[i])) {
            return error_set(
                err, ERROR_PERMANENT, "settings.%s: required for %s", api->needs[i], api->name);
        }
    }
    return true;
}

// ---- what an operator has defined ----

static Str setting_of(const CredentialEntry *credential, const char *name)
{
    for (size_t i = 0; i < credential->n_settings; i++) {
        if (strcmp(credential->settings[i]->name, name) == 0) {
            return str_from(credential->settings[i]->value);
        }
    }
    return STR_EMPTY;
}

// The host is written out, with a path behind it.
static bool check_prefix(const CredentialEntry *credential, Error *err)
{
    char url[SETTING_VALUE_MAX + 1];
    Str prefix = setting_of(credential, "address_prefix");
    ptrdiff_t scheme = str_find(prefix, ':');
    Str rest = scheme < 0 ? STR_EMPTY : str_slice(prefix, (size_t)scheme + 3, prefix.len);
    if (str_find(rest, '/') < 1) {
        return error_set(
            err, ERROR_PERMANENT,
            "settings.address_prefix: required where request.url is {{to}}: with what recipients' "
            "URLs begin, such as https://chat.example/hooks/");
    }
    return str_to_c(prefix, url, sizeof url) && check_target("settings.address_prefix", url, err);
}

static bool check_origin(VendorDefinition *definition, Arena *arena, Error *err)
{
    Str origin = definition_origin(definition);
    const char *url = arena_printf(arena, STR_FMT "/", STR_ARG(origin));
    return check_target("definition.request.url", url, err);
}

static bool try_definition(
    const CredentialEntry *credential, VendorDefinition *definition, Arena *arena, Error *err)
{
    VendorPair settings[CREDENTIAL_SETTINGS_MAX];
    VendorRequest request;
    for (size_t i = 0; i < credential->n_settings; i++) {
        settings[i] = (VendorPair){
            str_from(credential->settings[i]->name), str_from(credential->settings[i]->value)};
    }
    const VendorAccount account = {
        .name = str_from(credential->name),
        .id = str_from(credential->key_id),
        .settings = settings,
        .setting_count = credential->n_settings};
    if (definition_try(definition, &account, arena, &request, err)) {
        return true;
    }
    err->kind = ERROR_PERMANENT;
    return false;
}

static bool check_definition(const CredentialEntry *credential, Error *err)
{
    const VendorApi *api = vendor_find(str_from(credential->vendor));
    if (api == NULL || !api->by_definition) {
        return credential->definition[0] == '\0' ||
               error_set(
                   err, ERROR_PERMANENT,
                   "definition: '%s' is a vendor that needs none; one of your own is named "
                   "CHANNEL-WORD, such as sms-acme",
                   credential->vendor);
    }
    VendorDefinition *definition =
        definition_compile(str_from(credential->definition), api->channel, err);
    if (definition == NULL) {
        return false;
    }
    Arena *arena = arena_new(0);
    bool at_address = definition_origin(definition).len == 0;
    bool good =
        (at_address ? check_prefix(credential, err) : check_origin(definition, arena, err)) &&
        try_definition(credential, definition, arena, err);
    arena_free(arena);
    definition_drop(definition);
    return good;
}

bool credential_has_secret(const CredentialEntry *credential)
{
    const VendorApi *api = vendor_find(str_from(credential->vendor));
    return api == NULL || !api->endpoint;
}

bool credential_entry_check(const CredentialEntry *credential, Error *err)
{
    Str vendor = str_from(credential->vendor);
    if (!routing_is_vendor(vendor)) {
        return error_set(
            err, ERROR_PERMANENT, "vendor: '%.32s' is no vendor; 'stentor channel list' names them",
            credential->vendor);
    }
    if (str_eq(vendor, STR(ROUTING_SMTP))) {
        return error_set(
            err, ERROR_PERMANENT,
            "vendor: smtp has no credential here; its password is the dispatcher's "
            "STENTOR_SMTP_URL "
            "or STENTOR_SMTP_PASSWORD_FILE");
    }
    if (str_eq(vendor, STR(ROUTING_INAPP))) {
        return error_set(
            err, ERROR_PERMANENT, "vendor: inapp has no credential: it is always there");
    }
    if (!routing_is_name(str_from(credential->name), CREDENTIAL_NAME_MAX)) {
        return error_set(
            err, ERROR_PERMANENT, "name: not a name: a-z, 0-9, '_', '-', at most %d",
            CREDENTIAL_NAME_MAX);
    }
    if (str_from(credential->key_id).len > SETTING_VALUE_MAX ||
        str_has_control(str_from(credential->key_id))) {
        return error_set(
            err, ERROR_PERMANENT, "key_id: at most %d bytes on one line", SETTING_VALUE_MAX);
    }
    if (!credential_has_secret(credential) && credential->reference[0] != '\0') {
        return error_set(
            err, ERROR_PERMANENT,
            "reference: %s has no secret of its own: the recipient's address is one",
            credential->vendor);
    }
    return check_settings(credential, err) && check_needs(credential, err) &&
           check_definition(credential, err);
}
