// SPDX-License-Identifier: Apache-2.0
// A template's category decides whether opt-outs, quiet hours and consent count for its
// notifications. So no version changes it in passing: a document without a category keeps the one
// in force, and a version (or an archiving) that would change it needs the caller's word. The check
// asks this process's copy of CONFIG: of two callers at the same moment the second may be compared
// with what was in force before the first.
#include "common/model/template_key.h"
#include "services/gateway/templates/template_call.h"

typedef Stentor__V1__TemplateStatus TemplateStatus;

static const TemplateStatus ACTIVE = STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ACTIVE;
static const TemplateStatus ARCHIVED = STENTOR__V1__TEMPLATE_STATUS__TEMPLATE_STATUS_ARCHIVED;

static Category known(Category category)
{
    return category == CATEGORY_NONE ? CATEGORY_TRANSACTIONAL : category;
}

static CatalogName name_of(const TemplateCall *call)
{
    return (CatalogName){
        str_from(call->version->key), template_channel((int)call->version->channel)};
}

// Of the tenant's highest version with that status but `without`; NONE: there is none.
static Category highest(
    const TemplateCall *call, Str tenant, CatalogName name, TemplateStatus status, Str without)
{
    CatalogVersion *versions = NULL;
    size_t count =
        catalog_versions(call->api->catalog, tenant, name, call->base->http->arena, &versions);
    while (count-- > 0) {
        const CatalogVersion *v = &versions[count];
        if (v->status == status && !str_eq(str_from(v->version), without)) {
            return known(v->category);
        }
    }
    return CATEGORY_NONE;
}

// What a request of the tenant gets; NONE: it is refused.
static Category in_force(const TemplateCall *call, Str without)
{
    Str tenant = str_from(call->version->tenant);
    CatalogName name = name_of(call);
    Category own = highest(call, tenant, name, ACTIVE, without);
    return own != CATEGORY_NONE ? own : highest(call, PLATFORM, name, ACTIVE, without);
}

// Of the key on its other channels: `wanted` if one of them has it.
static Category elsewhere(const TemplateCall *call, Category wanted)
{
    Category found = CATEGORY_NONE;
    CatalogName name = name_of(call);
    for (int c = CHANNEL_EMAIL; c < CHANNEL_COUNT; c++) {
        name.channel = (Channel)c;
        Category there = highest(call, str_from(call->version->tenant), name, ACTIVE, STR_EMPTY);
        bool better = there != CATEGORY_NONE && (found == CATEGORY_NONE || there == wanted);
        found = better ? there : found;
    }
    return found;
}

// What requests get now, else what they got before all was archived; of a channel that is new to
// the key: what those of its other channels get.
static Category before(const TemplateCall *call, Category wanted)
{
    Category now = in_force(call, STR_EMPTY);
    Str tenant = str_from(call->version->tenant);
    if (now == CATEGORY_NONE) {
        now = highest(call, tenant, name_of(call), ARCHIVED, STR_EMPTY);
    }
    return now != CATEGORY_NONE ? now : elsewhere(call, wanted);
}

void template_category_keep(TemplateCall *call)
{
    Category category = before(call, CATEGORY_NONE);
    if (category == CATEGORY_NONE) { // a draft that is written again
        CatalogVersion there;
        bool found = catalog_find(
            call->api->catalog, str_from(call->version->tenant), name_of(call),
            str_from(call->version->version), &there);
        category = found ? known(there.category) : CATEGORY_TRANSACTIONAL;
    }
    call->version->category = (Stentor__V1__Category)category;
}

// "" when nothing changes.
static const char *change(const TemplateCall *call, Category from, Category to)
{
    if (from == CATEGORY_NONE || to == CATEGORY_NONE || from == to) {
        return "";
    }
    return arena_printf(
        call->base->http->arena, "the category of template '%s' changes from '%s' to '%s'",
        call->version->key, category_name(from), category_name(to));
}

const char *template_category_change(TemplateCall *call)
{
    const Stentor__V1__TemplateVersion *version = call->version;
    bool archived = version->status == ARCHIVED;
    Category to =
        archived ? in_force(call, str_from(version->version)) : known((Category)version->category);
    const char *text = change(call, archived ? in_force(call, STR_EMPTY) : before(call, to), to);
    bool changes = text[0] != '\0';
    bool draft = !archived && version->status != ACTIVE;
    if (changes) {
        call->warning = draft ? arena_printf(call->base->http->arena, "active, %s", text) : text;
    }
    return !changes || draft || call->may_change_category
               ? NULL
               : arena_printf(
                     call->base->http->arena,
                     "%s; if that is meant, say \"allow_category_change\": true "
                     "(--allow-category-change)",
                     text);
}
