// SPDX-License-Identifier: Apache-2.0
// Dead letters for people and as JSON. What is sealed is shown as "sealed", never as bytes; text of
// vendors and services is shown without control characters.
#pragma once

#include <jansson.h>

#include "common/deadletter/letter.h"

enum { LETTER_BYTES_SHOWN = 1024 }; // of an event that cannot be decoded, and of a bytes field

// An event by its descriptor: names as in the .proto files, times ("..._us") as RFC 3339 under the
// name without the unit; what is not set is left out. The caller's reference.
json_t *event_json(const ProtobufCMessage *event);

// One letter as a row of `dlq list`, and with everything. The caller's references.
json_t *letter_row(const Letter *letter, int64_t now_us, Arena *arena);
json_t *letter_whole(const Letter *letter, int64_t now_us, Arena *arena);

void letter_print_head(void); // of the rows
void letter_print_row(const Letter *letter, int64_t now_us, Arena *arena);
void letter_print_whole(const Letter *letter, int64_t now_us, Arena *arena);

// The text without control characters.
const char *printable(const char *text, Arena *arena);
