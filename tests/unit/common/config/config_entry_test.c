// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/codec/event.h"
#include "common/config/config_entry.h"
#include "common/model/asset.h"
#include "stentor/v1/config.pb-c.h"

// Is an asset believed on the subject? change: what is done to a good one before.
static bool is_believed(const char *subject, void (*change)(Stentor__V1__TemplateAsset *asset))
{
    uint8_t hash[ASSET_HASH_LEN] = {1};
    Arena *arena = arena_new(0);
    Error err = {0};
    ConfigName name;
    Stentor__V1__TemplateAsset asset;
    stentor__v1__template_asset__init(&asset);
    asset.tenant = arena_cstr(arena, STR("acme"));
    asset.name = arena_cstr(arena, STR("logo.png"));
    asset.sha256 = (ProtobufCBinaryData){sizeof hash, hash};
    asset.content_type = arena_cstr(arena, STR("image/png"));
    asset.size_bytes = ASSET_BYTES_MAX;
    if (change != NULL) {
        change(&asset);
    }
    BusMessage message = {.subject = str_from(subject), .event_id = STR("id")};
    assert_true(event_pack(&asset.base, arena, &message.payload, &err));
    bool believed = config_entry_check(&message, &name, arena, &err);
    assert_true(believed || err.kind == ERROR_PERMANENT);
    assert_true(!believed || str_eq(name.key, STR("logo.png")));
    arena_free(arena);
    return believed;
}

static void make_large(Stentor__V1__TemplateAsset *asset)
{
    asset->size_bytes++;
}

static void make_empty(Stentor__V1__TemplateAsset *asset)
{
    asset->size_bytes = 0;
}

static void cut_hash(Stentor__V1__TemplateAsset *asset)
{
    asset->sha256.len--;
}

static void make_svg(Stentor__V1__TemplateAsset *asset)
{
    static char type[] = "image/svg+xml";
    asset->content_type = type;
}

static void an_asset_is_believed_on_its_own_subject_when_it_is_whole(void **state)
{
    (void)state;
    assert_true(is_believed("cfg.asset.acme.logo.png", NULL));
    assert_false(is_believed("cfg.asset.evil.logo.png", NULL));
    assert_false(is_believed("cfg.asset.acme.logo", NULL));
    assert_false(is_believed("cfg.template.acme.logo.png", NULL));
    assert_false(is_believed("cfg.asset.acme.logo.png", make_large));
    assert_false(is_believed("cfg.asset.acme.logo.png", make_empty));
    assert_false(is_believed("cfg.asset.acme.logo.png", cut_hash));
    assert_false(is_believed("cfg.asset.acme.logo.png", make_svg));
}

static bool is_subscription(const char *subject, const char *id, const char *url, size_t secrets)
{
    Arena *arena = arena_new(0);
    ConfigName name;
    Stentor__V1__WebhookSecret secret, *list[] = {&secret};
    stentor__v1__webhook_secret__init(&secret);
    Stentor__V1__WebhookSubscription entry;
    stentor__v1__webhook_subscription__init(&entry);
    entry.tenant = arena_cstr(arena, STR("acme"));
    entry.id = arena_cstr(arena, str_from(id));
    entry.target_url = arena_cstr(arena, str_from(url));
    entry.secrets = list;
    entry.n_secrets = secrets;
    BusMessage message = {.subject = str_from(subject), .event_id = STR("id")};
    assert_true(event_pack(&entry.base, arena, &message.payload, NULL));
    bool believed = config_entry_check(&message, &name, arena, NULL);
    arena_free(arena);
    return believed;
}

static void a_subscription_is_believed_when_it_can_be_delivered_to(void **state)
{
    (void)state;
    static const char id[] = "whs_01KAGTQ5M0000000000000000A";
    static const char url[] = "https://hooks.example.com/";
    static const char subject[] = "cfg.webhook.acme.whs_01KAGTQ5M0000000000000000A";
    assert_true(is_subscription(subject, id, url, 1));
    assert_false(is_subscription(subject, id, url, 0));
    assert_false(is_subscription(subject, id, "", 1));
    assert_false(is_subscription(subject, "whs_01KAGTQ5M0000000000000000B", url, 1));
    assert_false(is_subscription("cfg.webhook.acme.own", "own", url, 1));
    assert_false(is_subscription("cfg.webhook.evil.whs_01KAGTQ5M0000000000000000A", id, url, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_asset_is_believed_on_its_own_subject_when_it_is_whole),
        cmocka_unit_test(a_subscription_is_believed_when_it_can_be_delivered_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
