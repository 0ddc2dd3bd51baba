// SPDX-License-Identifier: Apache-2.0
// A change of one entry of CONFIG for a call: what stands there is read, the call's precondition is
// compared with it, the new entry is made from it, and stored in the place of just what was read.
// Law: of two calls at the same moment the second one is refused: 412 with a precondition, else 409
// with the change's own slug (412 too where it has none).
#pragma once

#include <protobuf-c/protobuf-c.h>

#include "common/api/precondition.h"
#include "common/bus/jetstream/bus.h"

typedef struct ConfigChange ConfigChange;

struct ConfigChange {
    ApiCall *call;
    Bus *bus;
    const char *kind;
    Str key;
    const char *conflict_slug, *conflict_title; // NULL: see above
    // Makes the entry from the payload that stands there (empty: none); *ret NULL: it is to be
    // removed. false: answered, or config_change_write() is called later.
    bool (*make)(ConfigChange *change, Str there, const ProtobufCMessage **ret);
    // Takes what is stored into this process's copy: CONFIG brings it in a moment, and until then
    // the next call must not meet the old one. NULL: there is no copy. false: answered.
    bool (*take)(ConfigChange *change, Str payload, uint64_t sequence);
    // It is stored, or stood there already; payload empty: it is removed. The answer has its entity
    // tag.
    void (*answer)(ConfigChange *change, Str payload);
    void (*missing)(ApiCall *call); // of config_change_remove()
    Precondition needs;
    Str stands; // from `make` on: what is to be replaced, and its sequence
    uint64_t replaces;
};

// In the request's arena, with call, bus, kind and key; `size` of what begins with a ConfigChange.
ConfigChange *config_change_new(ApiCall *call, size_t size, Bus *bus, const char *kind, Str key);
// Leads to exactly one answer.
void config_change_run(ConfigChange *change);
// Removes the entry, with 204; missing: answers that there is none. In the place of make, answer and
// config_change_run().
void config_change_remove(ConfigChange *change, void (*missing)(ApiCall *call));
// An `answer`: 204, for what decides itself whether it removes.
void config_change_answer_removed(ConfigChange *change, Str payload);
// What `make` promised. message NULL: removes it; the same as what stands: nothing is stored.
void config_change_write(ConfigChange *change, const ProtobufCMessage *message);
