// SPDX-License-Identifier: Apache-2.0
#include "common/request/variable_rules.h"

#include <stdlib.h>
#include <string.h>

#include "common/codec/event.h"
#include "common/template/template.h"
#include "common/variables/variable_check.h"

struct VariableRules {
    Arena *arena; // of `opened`; NULL: not asked for yet
    const Stentor__V1__TemplateVersion *opened;
    size_t len;
    char bytes[]; // a TemplateVersion with variables only
};

static bool has_rules(const Stentor__V1__TemplateVersion *version)
{
    bool any = false;
    for (size_t i = 0; i < version->n_variables; i++) {
        Stentor__V1__TemplateVariable plain = *version->variables[i];
        Stentor__V1__TemplateVariable none;
        stentor__v1__template_variable__init(&none);
        none.name = plain.name;
        none.required = plain.required;
        any = any || stentor__v1__template_variable__get_packed_size(&plain) >
                         stentor__v1__template_variable__get_packed_size(&none);
    }
    return any;
}

VariableRules *variable_rules_pack(const Stentor__V1__TemplateVersion *version)
{
    if (!has_rules(version)) {
        return NULL;
    }
    Stentor__V1__TemplateVersion bare;
    stentor__v1__template_version__init(&bare);
    bare.variables = version->variables;
    bare.n_variables = version->n_variables;
    size_t len = stentor__v1__template_version__get_packed_size(&bare);
    VariableRules *rules = xmalloc(sizeof *rules + len);
    *rules = (VariableRules){0};
    rules->len = stentor__v1__template_version__pack(&bare, (uint8_t *)rules->bytes);
    return rules;
}

void variable_rules_free(VariableRules *rules)
{
    if (rules != NULL) {
        arena_free(rules->arena);
        free(rules);
    }
}

// Unpacked at its first use and kept: most versions are never used again.
static const Stentor__V1__TemplateVersion *open_rules(VariableRules *rules)
{
    if (rules->arena == NULL) {
        rules->arena = arena_new(0);
        rules->opened = (const Stentor__V1__TemplateVersion *)event_unpack(
            &stentor__v1__template_version__descriptor, str_of(rules->bytes, rules->len),
            rules->arena, NULL);
    }
    return rules->opened;
}

bool variable_rules_hold(
    VariableRules *rules, const json_t *variables, size_t *at, Arena *arena, const char **ret_field,
    const char **ret_text)
{
    const Stentor__V1__TemplateVersion *version =
        rules == NULL || variables == NULL ? NULL : open_rules(rules);
    if (version == NULL) {
        return true;
    }
    VariableFault fault = {.kind = VARIABLE_FINE};
    Arena *scratch = arena_new(0);
    while (fault.kind == VARIABLE_FINE && *at < version->n_variables) {
        const Stentor__V1__TemplateVariable *rule = version->variables[(*at)++];
        const json_t *value = template_lookup(variables, str_from(rule->name));
        if (value != NULL && !json_is_null(value)) {
            (void)variable_check(rule, value, scratch, &fault);
        }
    }
    arena_free(scratch);
    if (fault.kind != VARIABLE_FINE) {
        *ret_field = arena_printf(arena, "variables.%.110s", fault.path);
        *ret_text = arena_printf(arena, "%s", fault.text);
    }
    return fault.kind == VARIABLE_FINE;
}
