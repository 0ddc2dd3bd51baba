// SPDX-License-Identifier: Apache-2.0
#include "common/api/tenant_json.h"

#include <string.h>

#include "common/base/id.h"
#include "common/model/address.h"
#include "common/model/retention/retention.h"
#include "common/model/sender_domain.h"

// ---- status ----

static const char *const STATUS_NAMES[] = {
    [STENTOR__V1__TENANT_STATUS__TENANT_STATUS_ACTIVE] = "active",
    [STENTOR__V1__TENANT_STATUS__TENANT_STATUS_SUSPENDED] = "suspended",
    [STENTOR__V1__TENANT_STATUS__TENANT_STATUS_DELETING] = "deleting",
};

// An earlier release writes `suspended` alone, and it wins.
const char *tenant_status_name(const Stentor__V1__Tenant *tenant)
{
    const Stentor__V1__TenantStatus deleting = STENTOR__V1__TENANT_STATUS__TENANT_STATUS_DELETING;
    if (!tenant->suspended) {
        return STATUS_NAMES[STENTOR__V1__TENANT_STATUS__TENANT_STATUS_ACTIVE];
    }
    return tenant->status == deleting
               ? STATUS_NAMES[deleting]
               : STATUS_NAMES[STENTOR__V1__TENANT_STATUS__TENANT_STATUS_SUSPENDED];
}

bool tenant_status_set(Stentor__V1__Tenant *tenant, Str name)
{
    int i = STENTOR__V1__TENANT_STATUS__TENANT_STATUS_ACTIVE;
    for (; i <= (int)STENTOR__V1__TENANT_STATUS__TENANT_STATUS_DELETING; i++) {
        if (str_eq(name, str_from(STATUS_NAMES[i]))) {
            tenant->status = (Stentor__V1__TenantStatus)i;
            tenant->suspended = i != (int)STENTOR__V1__TENANT_STATUS__TENANT_STATUS_ACTIVE;
            return true;
        }
    }
    return false;
}

// ---- reading ----

static char *own(ApiBody *body, Str text)
{
    static char empty[] = "";
    return text.len == 0 ? empty : arena_cstr(body->arena, text);
}

// A name and a sender stand in headers: no line break. The postal address may have several lines.
static bool take_line(ApiBody *body, const char *name, char **ret)
{
    char reason[ADDRESS_REASON_SIZE];
    Str text = STR_EMPTY;
    if (!api_read_text(body, name, TENANT_TEXT_MAX, &text)) {
        return false;
    }
    if (!address_name_check(text, reason)) {
        return api_body_fail(body, name, "%s", reason);
    }
    *ret = own(body, text);
    return true;
}

static bool take_mailbox(ApiBody *body, const char *name, char **ret)
{
    char reason[ADDRESS_REASON_SIZE];
    Str address = STR_EMPTY;
    if (!take_line(body, name, ret)) {
        return false;
    }
    if ((*ret)[0] == '\0') {
        return true;
    }
    if (!address_parse(str_from(*ret), body->arena, &address, reason)) {
        return api_body_fail(body, name, "%s", reason);
    }
    *ret = own(body, address);
    return true;
}

static bool take_region(ApiBody *body, Stentor__V1__Tenant *ret)
{
    return take_line(body, "region", &ret->region) &&
           (strlen(ret->region) <= TENANT_REGION_MAX ||
            api_body_fail(body, "region", "at most %d bytes", (int)TENANT_REGION_MAX));
}

static bool take_language(ApiBody *body, Stentor__V1__Tenant *ret)
{
    (void)take_line(body, "locale", &ret->default_locale);
    (void)take_line(body, "time_zone", &ret->time_zone);
    if (ret->default_locale[0] != '\0' && !api_is_locale(str_from(ret->default_locale))) {
        (void)api_body_fail(body, "locale", "not a language tag such as 'en-US'");
    }
    return ret->time_zone[0] == '\0' || api_is_zone(str_from(ret->time_zone)) ||
           api_body_fail(body, "time_zone", "not a time zone such as 'Europe/Berlin' (IANA)");
}

static bool take_quiet(ApiBody *body, Stentor__V1__Tenant *ret)
{
    bool given = false;
    uint32_t start = 0;
    uint32_t end = 0;
    if (!api_read_quiet_hours(body, "quiet_hours", &given, &start, &end)) {
        return false;
    }
    if (given) {
        ret->quiet_hours = arena_zalloc(body->arena, sizeof *ret->quiet_hours);
        stentor__v1__quiet_hours__init(ret->quiet_hours);
        ret->quiet_hours->start_minute = start;
        ret->quiet_hours->end_minute = end;
    }
    return true;
}

static Stentor__V1__Limits *read_limits(ApiBody *inside)
{
    int64_t minute = 0;
    int64_t day = 0;
    (void)api_read_int(inside, "per_minute", 0, TENANT_LIMIT_MAX, &minute);
    (void)api_read_int(inside, "per_day", 0, TENANT_LIMIT_MAX, &day);
    Stentor__V1__Limits *limits = arena_zalloc(inside->arena, sizeof *limits);
    stentor__v1__limits__init(limits);
    limits->per_minute = (uint32_t)minute;
    limits->per_day = (uint32_t)day;
    return limits;
}

typedef struct ChannelLimitsList {
    Stentor__V1__ChannelLimits **items;
    size_t count;
} ChannelLimitsList;

static void add_channel_limits(ApiBody *body, Channel channel, ChannelLimitsList *list)
{
    const char *name = channel_name(channel);
    json_t *object = NULL;
    if (!api_read_object(body, name, &object) || object == NULL) {
        return;
    }
    ApiBody inside =
        api_body_inside(body, object, arena_printf(body->arena, "%s%s.", body->at, name));
    Stentor__V1__ChannelLimits *limits = arena_zalloc(body->arena, sizeof *limits);
    stentor__v1__channel_limits__init(limits);
    limits->channel = (Stentor__V1__Channel)channel;
    limits->limits = read_limits(&inside);
    list->items[list->count++] = limits;
    (void)api_body_inside_end(body, &inside);
}

// {"sms": {"per_minute": 10}}
static void take_channel_limits(ApiBody *body, ChannelLimitsList *list)
{
    json_t *object = NULL;
    if (!api_read_object(body, "channels", &object) || object == NULL) {
        return;
    }
    ApiBody inside =
        api_body_inside(body, object, arena_printf(body->arena, "%schannels.", body->at));
    list->items = arena_array(body->arena, CHANNEL_COUNT, sizeof(void *));
    for (int channel = CHANNEL_EMAIL; channel < CHANNEL_COUNT; channel++) {
        add_channel_limits(&inside, (Channel)channel, list);
    }
    (void)api_body_inside_end(body, &inside);
}

static bool take_limits(
    ApiBody *body, const char *name, Stentor__V1__Limits **ret, ChannelLimitsList *ret_channels)
{
    json_t *object = NULL;
    if (!api_read_object(body, name, &object) || object == NULL) {
        return body->problem.status == 0;
    }
    ApiBody inside = api_body_inside(body, object, arena_printf(body->arena, "%s.", name));
    *ret = read_limits(&inside);
    take_channel_limits(&inside, ret_channels);
    return api_body_inside_end(body, &inside);
}

static void take_both_limits(ApiBody *body, Stentor__V1__Tenant *ret)
{
    ChannelLimitsList own = {0};
    ChannelLimitsList recipients = {0};
    (void)take_limits(body, "limits", &ret->tenant_limits, &own);
    (void)take_limits(body, "recipient_limits", &ret->recipient_limits, &recipients);
    ret->channel_limits = own.items;
    ret->n_channel_limits = own.count;
    ret->recipient_channel_limits = recipients.items;
    ret->n_recipient_channel_limits = recipients.count;
}

// ---- what it sends at all ----

// Of {"sms": false}: the values of the names that are false. `ret` has room for `max`.
static size_t read_switches(
    ApiBody *body, const char *name, bool (*value_of)(Str name, int *ret), size_t max, int *ret)
{
    json_t *object = NULL;
    const char *key = NULL;
    json_t *value = NULL;
    size_t count = 0;
    if (!api_read_object(body, name, &object) || object == NULL) {
        return 0;
    }
    json_object_foreach(object, key, value)
    {
        const char *path = arena_printf(body->arena, "%s.%.40s", name, key);
        int one = 0;
        if (!value_of(str_from(key), &one)) {
            (void)api_body_fail(body, path, "not the name of one of the %s", name);
        } else if (!json_is_boolean(value)) {
            (void)api_body_fail(body, path, "must be true or false");
        } else if (json_is_false(value) && count < max) {
            ret[count++] = one;
        }
    }
    return count;
}

static bool channel_value(Str name, int *ret)
{
    Channel channel = CHANNEL_NONE;
    bool known = channel_from_name(name, &channel);
    *ret = (int)channel;
    return known;
}

static bool category_value(Str name, int *ret)
{
    Category category = CATEGORY_NONE;
    bool known = category_from_name(name, &category);
    *ret = (int)category;
    return known;
}

static bool take_policy(ApiBody *body, Stentor__V1__Tenant *ret)
{
    json_t *object = NULL;
    int channels[CHANNEL_COUNT];
    int categories[CATEGORY_COUNT];
    if (!api_read_object(body, "notification_policy", &object) || object == NULL) {
        return body->problem.status == 0;
    }
    ApiBody inside = api_body_inside(body, object, "notification_policy.");
    size_t off = read_switches(&inside, "channels", channel_value, CHANNEL_COUNT, channels);
    size_t kinds_off =
        read_switches(&inside, "categories", category_value, CATEGORY_COUNT, categories);
    Stentor__V1__NotificationPolicy *policy = arena_zalloc(body->arena, sizeof *policy);
    stentor__v1__notification_policy__init(policy);
    policy->channels_off = arena_array(body->arena, off + 1, sizeof *policy->channels_off);
    policy->categories_off =
        arena_array(body->arena, kinds_off + 1, sizeof *policy->categories_off);
    for (size_t i = 0; i < off; i++) {
        policy->channels_off[policy->n_channels_off++] = (Stentor__V1__Channel)channels[i];
    }
    for (size_t i = 0; i < kinds_off; i++) {
        policy->categories_off[policy->n_categories_off++] = (Stentor__V1__Category)categories[i];
    }
    ret->notification_policy = off + kinds_off > 0 ? policy : NULL;
    return api_body_inside_end(body, &inside);
}

// "every" mail shows the postal address, or those that "opt_out" is possible of.
static bool take_address(ApiBody *body, Stentor__V1__Tenant *ret)
{
    Str postal = STR_EMPTY;
    Str footer = STR_EMPTY;
    (void)api_read_text(body, "physical_address", TENANT_TEXT_MAX, &postal);
    (void)api_read_text(body, "address_footer", 32, &footer);
    bool every = str_eq(footer, STR("every"));
    if (footer.len > 0 && !every && !str_eq(footer, STR("opt_out"))) {
        return api_body_fail(body, "address_footer", "expected opt_out or every");
    }
    ret->physical_address = own(body, postal);
    ret->address_footer = every ? STENTOR__V1__ADDRESS_FOOTER__ADDRESS_FOOTER_EVERY
                                : STENTOR__V1__ADDRESS_FOOTER__ADDRESS_FOOTER_UNSPECIFIED;
    return true;
}

static const char *const SHARED_NAMES[] = {
    [STENTOR__V1__SHARED_ADDRESSES__SHARED_ADDRESSES_UNSPECIFIED] = "",
    [STENTOR__V1__SHARED_ADDRESSES__SHARED_ADDRESSES_ALLOW] = "allow",
    [STENTOR__V1__SHARED_ADDRESSES__SHARED_ADDRESSES_WARN] = "warn",
    [STENTOR__V1__SHARED_ADDRESSES__SHARED_ADDRESSES_REFUSE] = "refuse",
};
enum { SHARED_COUNT = sizeof SHARED_NAMES / sizeof SHARED_NAMES[0] };

static bool take_shared(ApiBody *body, Stentor__V1__Tenant *ret)
{
    Str name = STR_EMPTY;
    (void)api_read_text(body, "shared_addresses", 32, &name);
    for (int i = 0; i < SHARED_COUNT; i++) {
        if (str_eq(name, str_from(SHARED_NAMES[i]))) {
            ret->shared_addresses = (Stentor__V1__SharedAddresses)i;
            return true;
        }
    }
    return api_body_fail(body, "shared_addresses", "expected allow, warn or refuse");
}

static bool take_events(ApiBody *body, Stentor__V1__Tenant *ret)
{
    Str events = STR_EMPTY;
    (void)api_read_text(body, "events", 32, &events);
    ret->events_in_clear = str_eq(events, STR("clear"));
    return events.len == 0 || ret->events_in_clear || str_eq(events, STR("sealed")) ||
           api_body_fail(body, "events", "expected sealed or clear");
}

static bool take_policies(ApiBody *body, Stentor__V1__Tenant *ret)
{
    Str over = STR_EMPTY;
    Str routing = STR_EMPTY;
    GuardianRouting guardian = GUARDIAN_UNSAID;
    (void)api_read_text(body, "over_limit", 32, &over);
    (void)api_read_text(body, "guardian_routing", 32, &routing);
    bool suppress = str_eq(over, STR("suppress"));
    if (over.len > 0 && !suppress && !str_eq(over, STR("defer"))) {
        (void)api_body_fail(body, "over_limit", "expected defer or suppress");
    }
    if (routing.len > 0 && !guardian_routing_from_name(routing, &guardian)) {
        return api_body_fail(body, "guardian_routing", "expected none, copy or redirect");
    }
    ret->over_limit = suppress ? STENTOR__V1__OVER_LIMIT__OVER_LIMIT_SUPPRESS
                               : STENTOR__V1__OVER_LIMIT__OVER_LIMIT_DEFER;
    ret->guardian_routing = (Stentor__V1__GuardianRouting)guardian;
    return take_shared(body, ret);
}

static bool is_theme_name(Str name)
{
    if (name.len == 0 || name.len > 32 || name.ptr[0] < 'a' || name.ptr[0] > 'z') {
        return false;
    }
    return id_is_key(name) && str_find(name, '-') < 0;
}

static bool add_retention(
    ApiBody *body, const char *name, const json_t *value, Stentor__V1__Tenant *ret)
{
    const char *path = arena_printf(body->arena, "retention.%.40s", name);
    Category category = CATEGORY_NONE;
    RetentionClass class = RETENTION_RECORD;
    if (!category_from_name(str_from(name), &category)) {
        return api_body_fail(body, path, "not a category");
    }
    Str text = str_of(json_string_value(value), json_string_length(value));
    if (!json_is_string(value) || !retention_class_from_name(text, &class)) {
        return api_body_fail(body, path, "expected record, standard or brief");
    }
    Stentor__V1__CategoryRetention *entry = arena_zalloc(body->arena, sizeof *entry);
    stentor__v1__category_retention__init(entry);
    entry->category = (Stentor__V1__Category)category;
    entry->class_ = own(body, text);
    ret->retention[ret->n_retention++] = entry;
    return true;
}

static bool take_retention(ApiBody *body, Stentor__V1__Tenant *ret)
{
    json_t *object = NULL;
    const char *name = NULL;
    json_t *value = NULL;
    if (!api_read_object(body, "retention", &object) || object == NULL) {
        return body->problem.status == 0;
    }
    ret->retention = arena_array(body->arena, CATEGORY_COUNT, sizeof(void *));
    json_object_foreach(object, name, value)
    {
        (void)add_retention(body, name, value, ret);
    }
    return api_body_good(body);
}

static bool add_theme(
    ApiBody *body, const char *name, const json_t *value, Stentor__V1__Tenant *ret)
{
    const char *path = arena_printf(body->arena, "theme.%.40s", name);
    if (!is_theme_name(str_from(name))) {
        return api_body_fail(
            body, path, "a name is a-z, 0-9 and '_', at most 32, and begins with a letter");
    }
    Str text = str_of(json_string_value(value), json_string_length(value));
    if (!json_is_string(value) || text.len > TENANT_TEXT_MAX || str_has_control(text)) {
        return api_body_fail(
            body, path, "must be a string of at most %d bytes on one line", (int)TENANT_TEXT_MAX);
    }
    Stentor__V1__ThemeValue *entry = arena_zalloc(body->arena, sizeof *entry);
    stentor__v1__theme_value__init(entry);
    entry->name = own(body, str_from(name));
    entry->value = own(body, text);
    ret->theme[ret->n_theme++] = entry;
    return true;
}

static bool take_theme(ApiBody *body, Stentor__V1__Tenant *ret)
{
    json_t *object = NULL;
    const char *name = NULL;
    json_t *value = NULL;
    if (!api_read_object(body, "theme", &object) || object == NULL) {
        return body->problem.status == 0;
    }
    if (json_object_size(object) > TENANT_THEME_MAX) {
        return api_body_fail(body, "theme", "at most %d values", (int)TENANT_THEME_MAX);
    }
    ret->theme = arena_array(body->arena, TENANT_THEME_MAX, sizeof(void *));
    json_object_foreach(object, name, value)
    {
        (void)add_theme(body, name, value, ret);
    }
    return api_body_good(body);
}

static unsigned named_fields(const ApiBody *body)
{
    static const struct {
        const char *name;
        TenantField field;
    } fields[] = {
        {"suspended", TENANT_SUSPENDED},   {"sender_domains", TENANT_SENDER_DOMAINS},
        {"limits", TENANT_LIMITS},         {"recipient_limits", TENANT_RECIPIENT_LIMITS},
        {"over_limit", TENANT_OVER_LIMIT}, {"retention", TENANT_RETENTION},
        {"status", TENANT_STATUS},         {"notification_policy", TENANT_POLICY},
        {"region", TENANT_REGION},
    };
    unsigned named = 0;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        named |= api_has(body, fields[i].name) ? fields[i].field : 0;
    }
    return named;
}

static bool take_status(ApiBody *body, Stentor__V1__Tenant *ret)
{
    Str status = STR_EMPTY;
    bool suspended = false;
    bool flagged = api_has(body, "suspended");
    (void)api_read_bool(body, "suspended", &suspended);
    (void)api_read_text(body, "status", 32, &status);
    if (status.len == 0) {
        return !flagged || tenant_status_set(ret, suspended ? STR("suspended") : STR("active"));
    }
    if (!tenant_status_set(ret, status)) {
        return api_body_fail(body, "status", "expected active, suspended or deleting");
    }
    return !flagged || suspended == (bool)ret->suspended ||
           api_body_fail(
               body, "status",
               "contradicts 'suspended', which says the same: leave one of them out");
}

// A body that was read and is put back names its tenant.
static bool take_head(ApiBody *body, Stentor__V1__Tenant *ret)
{
    Str tenant = str_from(ret->tenant);
    bool named = api_read_text(body, "tenant", TENANT_TEXT_MAX, &tenant);
    (void)take_status(body, ret);
    return !named || str_eq(tenant, str_from(ret->tenant)) ||
           api_body_fail(body, "tenant", "these are the settings of tenant '%s'", ret->tenant);
}

static bool take_domains(ApiBody *body, Stentor__V1__Tenant *ret)
{
    json_t *list = NULL;
    char reason[ADDRESS_REASON_SIZE];
    if (!api_read_array(body, "sender_domains", SENDER_DOMAINS_MAX, &list)) {
        return false;
    }
    ret->sender_domains = arena_array(body->arena, SENDER_DOMAINS_MAX, sizeof(char *));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        Str text = str_of(json_string_value(item), json_string_length(item));
        Str domain = STR_EMPTY;
        if (!json_is_string(item) || !sender_domain_parse(text, body->arena, &domain, reason)) {
            (void)api_body_fail(
                body, arena_printf(body->arena, "sender_domains[%zu]", i), "%s",
                json_is_string(item) ? reason : "must be a string");
            continue;
        }
        ret->sender_domains[ret->n_sender_domains++] = own(body, domain);
    }
    return true;
}

bool tenant_json_read(ApiBody *body, Stentor__V1__Tenant *ret, unsigned *ret_named)
{
    *ret_named = named_fields(body);
    (void)take_head(body, ret);
    (void)take_domains(body, ret);
    (void)take_line(body, "name", &ret->name);
    (void)take_language(body, ret);
    (void)take_line(body, "sender_name", &ret->sender_name);
    (void)take_mailbox(body, "sender_address", &ret->sender_address);
    (void)take_mailbox(body, "reply_to", &ret->reply_to);
    (void)take_quiet(body, ret);
    take_both_limits(body, ret);
    (void)take_policies(body, ret);
    (void)take_policy(body, ret);
    (void)take_region(body, ret);
    (void)take_events(body, ret);
    (void)take_retention(body, ret);
    (void)take_address(body, ret);
    (void)take_theme(body, ret);
    return api_body_good(body);
}

// ---- printing ----

static void put_text(Buf *out, const char *name, const char *text)
{
    if (text[0] != '\0') {
        buf_printf(out, ",\"%s\":", name);
        buf_json(out, str_from(text));
    }
}

static void put_pair(Buf *out, const Stentor__V1__Limits *limits)
{
    bool none = limits == NULL;
    buf_printf(
        out, "\"per_minute\":%u,\"per_day\":%u", none ? 0 : limits->per_minute,
        none ? 0 : limits->per_day);
}

static void put_limits(
    Buf *out, const char *name, const Stentor__V1__Limits *limits,
    Stentor__V1__ChannelLimits *const *channels, size_t count)
{
    if (limits == NULL && count == 0) {
        return;
    }
    buf_printf(out, ",\"%s\":{", name);
    put_pair(out, limits);
    for (size_t i = 0; i < count; i++) {
        buf_cstr(out, i == 0 ? ",\"channels\":{" : ",");
        buf_json(out, str_from(channel_name((Channel)channels[i]->channel)));
        buf_cstr(out, ":{");
        put_pair(out, channels[i]->limits);
        buf_cstr(out, i + 1 == count ? "}}" : "}");
    }
    buf_char(out, '}');
}

static void put_switch(Buf *out, bool first, const char *name)
{
    buf_cstr(out, first ? "" : ",");
    buf_json(out, str_from(name));
    buf_cstr(out, ":false");
}

static void put_policy(Buf *out, const Stentor__V1__NotificationPolicy *policy)
{
    if (policy == NULL) {
        return;
    }
    buf_cstr(out, ",\"notification_policy\":{\"channels\":{");
    for (size_t i = 0; i < policy->n_channels_off; i++) {
        put_switch(out, i == 0, channel_name((Channel)policy->channels_off[i]));
    }
    buf_cstr(out, "},\"categories\":{");
    for (size_t i = 0; i < policy->n_categories_off; i++) {
        put_switch(out, i == 0, category_name((Category)policy->categories_off[i]));
    }
    buf_cstr(out, "}}");
}

void tenant_json_print(const Stentor__V1__Tenant *tenant, Buf *out)
{
    buf_cstr(out, "{\"tenant\":");
    buf_json(out, str_from(tenant->tenant));
    put_text(out, "name", tenant->name);
    put_text(out, "status", tenant_status_name(tenant));
    buf_printf(out, ",\"suspended\":%s", tenant->suspended ? "true" : "false");
    put_text(out, "region", tenant->region);
    put_text(out, "locale", tenant->default_locale);
    put_text(out, "time_zone", tenant->time_zone);
    put_text(out, "sender_address", tenant->sender_address);
    put_text(out, "sender_name", tenant->sender_name);
    put_text(out, "reply_to", tenant->reply_to);
    for (size_t i = 0; i < tenant->n_sender_domains; i++) {
        buf_cstr(out, i == 0 ? ",\"sender_domains\":[" : ",");
        buf_json(out, str_from(tenant->sender_domains[i]));
        buf_cstr(out, i + 1 == tenant->n_sender_domains ? "]" : "");
    }
    if (tenant->quiet_hours != NULL) {
        unsigned start = tenant->quiet_hours->start_minute;
        unsigned end = tenant->quiet_hours->end_minute;
        buf_printf(
            out, ",\"quiet_hours\":{\"start\":\"%02u:%02u\",\"end\":\"%02u:%02u\"}", start / 60,
            start % 60, end / 60, end % 60);
    }
    put_limits(
        out, "limits", tenant->tenant_limits, tenant->channel_limits, tenant->n_channel_limits);
    put_limits(
        out, "recipient_limits", tenant->recipient_limits, tenant->recipient_channel_limits,
        tenant->n_recipient_channel_limits);
    bool suppress = tenant->over_limit == STENTOR__V1__OVER_LIMIT__OVER_LIMIT_SUPPRESS;
    put_text(out, "over_limit", suppress ? "suppress" : "defer");
    put_text(
        out, "guardian_routing", guardian_routing_name((GuardianRouting)tenant->guardian_routing));
    if ((int)tenant->shared_addresses > 0 && (int)tenant->shared_addresses < SHARED_COUNT) {
        put_text(out, "shared_addresses", SHARED_NAMES[tenant->shared_addresses]);
    }
    for (size_t i = 0; i < tenant->n_retention; i++) {
        buf_cstr(out, i == 0 ? ",\"retention\":{" : ",");
        buf_json(out, str_from(category_name((Category)tenant->retention[i]->category)));
        buf_char(out, ':');
        buf_json(out, str_from(tenant->retention[i]->class_));
        buf_cstr(out, i + 1 == tenant->n_retention ? "}" : "");
    }
    put_policy(out, tenant->notification_policy);
    put_text(out, "physical_address", tenant->physical_address);
    bool every = tenant->address_footer == STENTOR__V1__ADDRESS_FOOTER__ADDRESS_FOOTER_EVERY;
    put_text(out, "address_footer", every ? "every" : "");
    put_text(out, "events", tenant->events_in_clear ? "clear" : "");
    buf_cstr(out, ",\"theme\":{");
    for (size_t i = 0; i < tenant->n_theme; i++) {
        buf_cstr(out, i > 0 ? "," : "");
        buf_json(out, str_from(tenant->theme[i]->name));
        buf_char(out, ':');
        buf_json(out, str_from(tenant->theme[i]->value));
    }
    buf_cstr(out, "}}");
}

// ---- merging ----

static void merge(json_t *target, const json_t *patch)
{
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)(uintptr_t)patch, name, value)
    {
        if (json_is_null(value)) {
            (void)json_object_del(target, name);
        } else if (!json_is_object(value)) {
            (void)json_object_set(target, name, value);
        } else {
            if (!json_is_object(json_object_get(target, name))) {
                (void)json_object_set_new(target, name, json_object());
            }
            merge(json_object_get(target, name), value);
        }
    }
}

json_t *tenant_json_merge(const Stentor__V1__Tenant *tenant, const json_t *patch)
{
    json_t *settings = NULL;
    if (tenant != NULL) {
        Buf text;
        buf_init(&text, TENANT_JSON_MAX);
        tenant_json_print(tenant, &text);
        settings = json_loadb(text.ptr, text.len, 0, NULL);
        buf_done(&text);
    }
    settings = settings != NULL ? settings : json_object();
    bool flags = json_object_get(patch, "suspended") != NULL;
    bool states = json_object_get(patch, "status") != NULL;
    if (flags != states) {
        (void)json_object_del(settings, flags ? "status" : "suspended");
    }
    merge(settings, patch);
    return settings;
}
