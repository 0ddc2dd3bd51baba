// SPDX-License-Identifier: Apache-2.0
// A durable subscriber of a tenant's statuses: it goes on where it stopped, however long it was
// away (up to the 30 days of STATUS).
//   cc durable.c -o durable -lnats         (Debian: libnats-dev)
//   NATS_URL=... NATS_USER=... NATS_PASSWORD=... TENANT=demo ./durable [COUNT]
// Prints a line "STATUS NOTIFICATION EVENT" for each; ends after COUNT. The user comes from
// `stentor subscriber create`.
#include <limits.h>
#include <nats/nats.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *setting(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : otherwise;
}

static void must(natsStatus status, jsErrCode code, const char *what)
{
    if (status != NATS_OK) {
        fprintf(stderr, "%s: %s (JetStream %d)\n", what, natsStatus_GetText(status), (int)code);
        exit(1);
    }
}

static natsConnection *open_connection(const char *user)
{
    natsOptions *options = NULL;
    natsConnection *connection = NULL;
    must(natsOptions_Create(&options), 0, "options");
    must(natsOptions_SetURL(options, setting("NATS_URL", "nats://127.0.0.1:4222")), 0, "NATS_URL");
    must(natsOptions_SetUserInfo(options, user, setting("NATS_PASSWORD", "")), 0, "NATS_PASSWORD");
    must(natsConnection_Connect(&connection, options), 0, "connect");
    natsOptions_Destroy(options);
    return connection;
}

// Made once and there from then on: to say the same again changes nothing. `Name` is needed:
// without it this client asks in the older way, which names no filter, and is refused.
static void make_consumer(jsCtx *js, const char *durable)
{
    char filter[128];
    jsConsumerConfig config;
    jsErrCode code = 0;
    jsConsumerConfig_Init(&config);
    snprintf(filter, sizeof filter, "ntf.status.%s.>", setting("TENANT", "demo"));
    config.Name = durable;
    config.Durable = durable;
    config.FilterSubject = filter;
    config.AckPolicy = js_AckExplicit;
    must(js_AddConsumer(NULL, js, "STATUS", &config, NULL, &code), code, "consumer");
}

static const char *header(natsMsg *message, const char *name)
{
    const char *value = NULL;
    return natsMsgHeader_Get(message, name, &value) == NATS_OK && value != NULL ? value : "";
}

static void print_one(natsMsg *message)
{
    const char *type = header(message, "ce-type"); // stentor.notification.<status>.v1
    size_t head = strlen("stentor.notification.");
    const char *status = strlen(type) > head ? type + head : type;
    // An event may come twice, with the same id: with a database, make the id a unique key next to
    // what is written.
    printf(
        "%.*s %s %s\n", (int)strcspn(status, "."), status, header(message, "ce-subject"),
        header(message, "ce-id"));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    long count = argc > 1 ? strtol(argv[1], NULL, 10) : LONG_MAX;
    const char *user = setting("NATS_USER", "stentor-subscriber");
    char own[64];
    snprintf(own, sizeof own, "%s-0", user);
    const char *durable = setting("CONSUMER", own); // a subscriber has USER and USER-0 to USER-7
    natsConnection *connection = open_connection(user);
    jsCtx *js = NULL;
    jsOptions options;
    jsErrCode code = 0;
    jsOptions_Init(&options);
    options.Domain = "stentor";
    must(natsConnection_JetStream(&js, connection, &options), 0, "JetStream");
    make_consumer(js, durable);

    natsSubscription *subscription = NULL;
    jsSubOptions bound;
    jsSubOptions_Init(&bound);
    bound.Stream = "STATUS";
    bound.Consumer = durable;
    must(
        js_PullSubscribe(&subscription, js, NULL, durable, NULL, &bound, &code), code, "subscribe");
    for (long seen = 0; seen < count;) {
        natsMsgList messages = {0};
        int wanted = count - seen < 100 ? (int)(count - seen) : 100;
        natsStatus status = natsSubscription_Fetch(&messages, subscription, wanted, 5000, &code);
        if (status == NATS_TIMEOUT) {
            continue;
        }
        must(status, code, "fetch");
        for (int i = 0; i < messages.Count; i++, seen++) {
            print_one(messages.Msgs[i]);
            // After the work: what is not acknowledged within 30 s comes again.
            must(natsMsg_AckSync(messages.Msgs[i], NULL, &code), code, "ack");
        }
        natsMsgList_Destroy(&messages);
    }
    natsSubscription_Destroy(subscription);
    jsCtx_Destroy(js);
    natsConnection_Destroy(connection);
    return 0;
}
