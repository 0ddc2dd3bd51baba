// SPDX-License-Identifier: Apache-2.0
// links: stentor_render
// Any JSON is a version or names the field that is wrong; a version that compiles can be previewed
// or says why not, and shown again it is the same version.
#include <assert.h>

#include "common/codec/event.h"
#include "common/render/preview.h"
#include "common/render/version_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void preview_it(const Stentor__V1__TemplateVersion *version, Arena *arena)
{
    Str packed;
    json_t *answer = NULL;
    RenderFailure failure = {.code = FAILURE_NONE};
    if (!event_pack(&version->base, arena, &packed, NULL)) {
        return;
    }
    CompiledVersion *compiled = version_compile(packed);
    if (compiled->broken.kind == ERROR_NONE) {
        bool ok = preview(compiled, &(PreviewAsk){.locale = STR("fa-AF")}, &answer, &failure);
        assert(ok == (answer != NULL));
        assert(ok || failure.reason[0] != '\0');
    }
    json_decref(answer);
    version_free(compiled);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *document = json_loadb((const char *)data, size, JSON_DECODE_ANY, NULL);
    if (document == NULL) {
        return 0;
    }
    Arena *arena = arena_new(0);
    FieldFaults faults;
    Stentor__V1__TemplateVersion version;
    if (version_from_json(document, arena, &version, &faults)) {
        json_decref(version_to_json(&version, false));
        preview_it(&version, arena);
    } else {
        assert(faults.count > 0 && faults.count <= FIELD_FAULTS_MAX);
        for (size_t i = 0; i < faults.count; i++) {
            assert(faults.items[i].detail[0] != '\0');
        }
    }
    arena_free(arena);
    json_decref(document);
    return 0;
}
