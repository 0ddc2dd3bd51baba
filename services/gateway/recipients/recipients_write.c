// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/recipients/recipients_write.h"

#include "common/base/clock.h"
#include "common/bus/topology/topology.h"
#include "common/codec/hash.h"

typedef struct Publish {
    RecipientsWrite *write;
    PersonFact *fact;
} Publish;

const char *recipients_write_unready(const Bus *bus)
{
    if (!bus_connected(bus)) {
        return "NATS cannot be reached";
    }
    return bus_pending(bus) > PEOPLE_BUS_MAX ? "too many events wait to be published" : NULL;
}

// The events are stored whether or not the projection was seen to have them: the answer is the
// same. A process killed before it answers leaves a caller in doubt, who repeats: the same content
// makes the same rows.
static void on_people_seen(void *ctx, bool seen)
{
    (void)seen;
    RecipientsWrite *write = ctx;
    write->done(write->ctx, NULL);
}

static void settle_publish(RecipientsWrite *write)
{
    if (--write->waiting > 0) {
        return;
    }
    if (write->sequence > 0) {
        people_wait(write->wait, write->sequence, on_people_seen, write);
    } else {
        write->done(write->ctx, NULL);
    }
}

static void publish_from(RecipientsWrite *write, size_t from, size_t to);

static void on_publish_acked(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)duplicate;
    const Publish *publish = ctx;
    RecipientsWrite *write = publish->write;
    bool first = write->guarded && publish->fact == write->facts;
    if (first && err != NULL && err->kind == ERROR_CONFLICT) {
        write->lost = true;
        write->there = sequence;
    } else if (err != NULL) {
        publish->fact->error = *err;
    } else if (sequence > write->sequence) {
        write->sequence = sequence;
    }
    if (first && err == NULL && write->count > 1) {
        publish_from(write, 1, write->count);
    }
    settle_publish(write);
}

static bool publish_fact(RecipientsWrite *write, PersonFact *fact, DataKey *key)
{
    PersonSaying saying = {
        .tenant = write->tenant,
        .said_by = write->said_by,
        .now_us = write->now_us,
        .hash_key = master_hash_key(keyring_master(write->keyring)),
        .key = key,
    };
    BusOut out = {.traceparent = STR_EMPTY};
    if (!person_event_pack(
            fact, &saying, write->arena, &out.event_id, &out.payload, &fact->error)) {
        return false;
    }
    char subject[SUBJECT_SIZE];
    subject_people(subject, write->tenant);
    out.subject = subject;
    BusHeader expected;
    if (write->guarded && fact == write->facts) {
        expected = bus_replaces(write->replaces, write->arena);
        out.headers = &expected;
        out.header_count = 1;
    }
    Publish *publish = arena_alloc(write->arena, sizeof *publish);
    *publish = (Publish){write, fact};
    bus_publish(write->bus, &out, on_publish_acked, publish);
    return true;
}

static void publish_from(RecipientsWrite *write, size_t from, size_t to)
{
    size_t key = 0; // the records among them have their keys in the order of the facts
    for (size_t i = 0; i < from; i++) {
        key += write->facts[i].part == PERSON_RECORD;
    }
    for (size_t i = from; i < to; i++) {
        PersonFact *fact = &write->facts[i];
        DataKey *found = fact->part == PERSON_RECORD ? write->wants[key++].key : NULL;
        if (fact->part == PERSON_RECORD && found == NULL) {
            (void)error_set(&fact->error, ERROR_TRANSIENT, "the recipient has no data key");
        } else if (publish_fact(write, fact, found)) {
            write->waiting++;
        }
    }
}

static void publish_all(RecipientsWrite *write)
{
    write->now_us = clock_now_us();
    write->waiting = 1; // ours, so that no ack ends it before all are out
    publish_from(write, 0, write->guarded ? 1 : write->count);
    if (write->waiting == 1) { // none was published
        write->done(write->ctx, NULL);
        return;
    }
    settle_publish(write);
}

static void on_keys_found(void *ctx, const Error *err)
{
    RecipientsWrite *write = ctx;
    if (err != NULL) {
        write->done(write->ctx, err);
    } else {
        publish_all(write);
    }
}

void recipients_write(RecipientsWrite *write)
{
    write->wants = arena_array(write->arena, write->count, sizeof *write->wants);
    write->want_count = 0;
    for (size_t i = 0; i < write->count; i++) {
        if (write->facts[i].part == PERSON_RECORD) {
            KeyWant *want = &write->wants[write->want_count++];
            *want = keyring_want(
                write->keyring, DATA_KEY_ORDINARY, write->tenant, write->facts[i].recipient_id);
        }
    }
    if (write->want_count == 0) {
        publish_all(write);
    } else {
        keyring_resolve(write->keyring, write->wants, write->want_count, on_keys_found, write);
    }
}
