// SPDX-License-Identifier: Apache-2.0
// links: stentor_vendor
// Any bytes as the definition of a vendor, and as what that vendor answers and calls back: the
// first byte chooses the channel, the second the answer's status, then the definition until a NUL,
// then the bytes. What compiles makes a request whose host is the definition's own, or says why
// not; there is always a result, and only a 2xx is an accepted message.
#include <stdlib.h>
#include <string.h>

#include "common/vendor/generic/definition.h"
#include "common/vendor/vendor_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void try_request(VendorDefinition *definition)
{
    static const VendorPair settings[] = {
        {{"address_prefix", 14}, {"https://chat.example/x/", 23}},
        {{"account", 7}, {"../a b", 6}},
        {{"from", 4}, {"SHOP", 4}}};
    const VendorAccount account = {
        .name = STR("main"), .id = STR("\"id"), .settings = settings, .setting_count = 3};
    Arena *arena = arena_new(0);
    VendorRequest request;
    Error err = {0};
    if (definition_try(definition, &account, arena, &request, &err)) {
        Str origin = definition_origin(definition);
        require(request.body.len > 0 && request.header_count <= VENDOR_HEADERS_MAX);
        require(!str_has_control(request.url));
        require(str_starts(request.url, origin.len > 0 ? origin : STR("https://chat.example/x/")));
    } else {
        require(err.kind == ERROR_PERMANENT || err.kind == ERROR_CONFIG);
    }
    arena_free(arena);
}

static void read_answer(const VendorDefinition *definition, Channel channel, int status, Str body)
{
    Arena *arena = arena_new(0);
    const VendorAnswer answer = {.status = status, .body = body, .definition = definition};
    SendResult result;
    memset(&result, 0xff, sizeof result); // read() sets every field
    definition_api(channel)->read(&answer, arena, &result);
    bool accepted = result.state == SEND_ANSWERED && result.reply == REPLY_ACCEPTED;
    require(result.state == SEND_ANSWERED || result.state == SEND_UNKNOWN);
    require(!accepted || status / 100 == 2);
    require(result.text.len <= VENDOR_TEXT_MAX && str_is_utf8(result.text));
    require(!str_has_control(result.text) && !str_has_control(result.vendor_message_id));
    require(result.vendor_message_id.len <= VENDOR_MESSAGE_ID_MAX);
    arena_free(arena);
}

static void read_callback(const VendorDefinition *definition, Str body)
{
    Arena *arena = arena_new(0);
    CallbackBatch batch = {0};
    Error err = {0};
    const CallbackKey key = {STR("main"), STR("0123456789abcdef")};
    const VendorPair header = {
        str_from(
            definition_signature_header(definition) != NULL
                ? definition_signature_header(definition)
                : "x"),
        str_slice(body, 0, 40)};
    const CallbackRequest request = {.headers = &header, .header_count = 1, .body = body};
    CallbackVerdict verdict = CALLBACK_GOOD;
    size_t which = 0;
    require(!definition_verify(definition, &request, &key, 1, &verdict, &which));
    if (definition_events(definition, body, arena, &batch, &err)) {
        require(batch.count <= CALLBACK_EVENTS_MAX);
        for (size_t i = 0; i < batch.count; i++) {
            require(batch.events[i].text.len <= CALLBACK_TEXT_MAX);
            require(!str_has_control(batch.events[i].message_id));
        }
    }
    arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }
    Channel channel = (Channel)(1 + data[0] % (CHANNEL_COUNT - 1));
    Str rest = str_of(data + 2, size - 2);
    Str document;
    Error err = {0};
    (void)str_split(&rest, '\0', &document);
    VendorDefinition *definition = definition_compile(document, channel, &err);
    if (definition == NULL) {
        require(err.kind == ERROR_PERMANENT && err.text[0] != '\0');
        return 0;
    }
    try_request(definition);
    read_answer(definition, channel, 100 + data[1] * 2 % 500, rest);
    if (definition_calls_back(definition)) {
        read_callback(definition, rest);
    }
    definition_drop(definition);
    return 0;
}
