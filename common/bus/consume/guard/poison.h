// SPDX-License-Identifier: Apache-2.0
// Poison messages: an input that ends, or hangs, every process that takes it. This is the pure
// part: what a mark says, which processes died over which input, how few inputs are handed over
// together, and when an input is quarantined (dead-lettered unread). How marks are stored: guard.h.
//
// A mark is what a process has in hand and computes on, written before it begins and taken away
// when it is through. One that stands though its inputs come again is the evidence of a death. An
// input is its sequence AND the time it was stored: a restored store gives sequences a second time.
//
// Law: the fewer processes lived over an input, the fewer others it is handed over with, so a
// poison message is found by bisection, and the last deaths name it alone. A process that lived
// takes the input out of every mark: only deaths in a row count.
#pragma once

#include "common/base/buf.h"

enum {
    POISON_DEATHS = 5,       // in a row ...
    POISON_ALONE = 2,        // ... of them with nothing else in hand
    POISON_GROUP_MAX = 256,  // inputs of a mark
    POISON_MARKS_MAX = 1024, // marks in memory; beyond it the oldest goes
};

typedef struct PoisonInput {
    uint64_t sequence;
    int64_t stored_at_us;
} PoisonInput;

typedef struct PoisonMark {
    char *process; // the subject's last token
    char *stream;
    uint64_t at;         // the mark's own sequence
    size_t size;         // inputs when it was made for a group, or more than are left of it
    PoisonInput *inputs; // without those that another process lived over since
    size_t count;
    bool acquitted; // an input was taken out here; not stored yet
    bool storing;
} PoisonMark;

typedef struct PoisonMarks {
    PoisonMark *at;
    size_t count, cap;
} PoisonMarks;

typedef struct PoisonEvidence {
    uint32_t deaths; // marks of other processes that name the input
    uint32_t alone;  // of these: made for it alone
} PoisonEvidence;

// How many inputs may be handed over together when one of them has so many deaths: 256, 32, 4, 1.
size_t poison_group_max(uint32_t deaths);
bool poison_is_proven(const PoisonEvidence *evidence);

// "<stream> <size> <sequence>/<stored at> ..."; nothing for no inputs. false: `out` is full.
bool poison_mark_write(
    Buf *out, const char *stream, size_t size, const PoisonInput *inputs, size_t count);
// The mark of `process` now; an empty text takes its mark away, and so does one that cannot be read
// (false). What is older than the mark that is known is passed over. A mark that another process
// stored again without what it lived over stays without what this one lived over.
bool poison_marks_put(PoisonMarks *marks, Str process, uint64_t at, Str text);
PoisonMark *poison_marks_find(PoisonMarks *marks, Str process); // NULL: none
void poison_marks_drop(PoisonMarks *marks, PoisonMark *mark);
// `own`: the process whose mark does not count.
PoisonEvidence poison_evidence(
    const PoisonMarks *marks, Str own, const char *stream, const PoisonInput *input);
// Takes the input out of every mark but `own`'s and flags those. true: there was one.
bool poison_acquit(PoisonMarks *marks, Str own, const char *stream, const PoisonInput *input);
// The stream's consumer is through with everything up to `floor`: no mark but `own`'s names that
// any more. true: one did, and is flagged.
bool poison_marks_through(PoisonMarks *marks, Str own, const char *stream, uint64_t floor);
void poison_marks_done(PoisonMarks *marks); // empty again
