// SPDX-License-Identifier: Apache-2.0
#include "common/request/required.h"

#include <string.h>

#include "common/names/member.h"
#include "common/template/template.h"

static bool is_asked(const Stentor__V1__TemplateVariable *variable)
{
    static const char *const given[] = {
        "unsubscribe_url", "preferences_url", "physical_address"}; // renderer/footer.c
    bool asked = variable->required && variable->name[0] != '\0';
    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++) {
        asked = asked && strcmp(variable->name, given[i]) != 0;
    }
    return asked;
}

char *required_pack(const Stentor__V1__TemplateVersion *version)
{
    size_t size = 0;
    for (size_t i = 0; i < version->n_variables; i++) {
        size += is_asked(version->variables[i]) ? strlen(version->variables[i]->name) + 1 : 0;
    }
    if (size == 0) {
        return NULL;
    }
    char *required = xmalloc(size + 1);
    char *at = required;
    for (size_t i = 0; i < version->n_variables; i++) {
        const char *name = version->variables[i]->name;
        if (is_asked(version->variables[i])) {
            memcpy(at, name, strlen(name) + 1);
            at += strlen(name) + 1;
        }
    }
    *at = '\0';
    return required;
}

const char *required_copy(const char *required, Arena *arena)
{
    if (required == NULL) {
        return NULL;
    }
    const char *end = required;
    while (*end != '\0') {
        end += strlen(end) + 1;
    }
    return arena_copy(arena, required, (size_t)(end - required) + 1);
}

static const json_t *find(const char *path, const json_t *variables, const json_t *defaults)
{
    Str rest = str_from(path);
    Str top = STR_EMPTY;
    (void)str_split(&rest, '.', &top);
    bool own = member_find(variables, top) != NULL;
    const json_t *from = own ? variables : defaults;
    return from == NULL ? NULL : template_lookup(from, str_from(path));
}

const char *required_missing(const char **at, const json_t *variables, const json_t *defaults)
{
    while (*at != NULL && **at != '\0') {
        const char *path = *at;
        *at += strlen(path) + 1;
        const json_t *value = find(path, variables, defaults);
        if (value == NULL || json_is_null(value)) {
            return path;
        }
    }
    return NULL;
}

bool required_error(FieldError *err, const char *path, const Request *frozen, Arena *arena)
{
    return field_error(
        err, arena_printf(arena, "variables.%.96s", path),
        "required by template '" STR_FMT "' version '" STR_FMT "'", STR_ARG(frozen->template_key),
        STR_ARG(frozen->template_version));
}
