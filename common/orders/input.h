// SPDX-License-Identifier: Apache-2.0
// SagaInput: a domain event as the saga reads it, fully checked. Event types and field names are
// those of order.proto in any of their spellings (common/names). Pure.
//
// Amounts: total_micros (a whole number), or total_money or total (a number or a decimal text);
// within numeric(18, 2), never negative. The same for refund_micros, refund_money, refund.
#pragma once

#include "common/domain/domain_event.h"
#include "common/orders/uuid.h"

enum { CURRENCY_SIZE = 4, ORDER_LINES_MAX = 100 };

// What was ordered. Members: `product_id`, `name`, `quantity` (1 if absent), `price_micros`,
// `price_money`, `unit_price` or `price` of one; of the list: `lines`, `order_lines`, `order_items` or
// `items`, at most ORDER_LINES_MAX.
typedef struct SagaLine {
    Str product_id, name;
    int64_t quantity;
    int64_t price_micros;
} SagaLine;

typedef enum InputKind {
    INPUT_PASSED, // ignored: a StatusChanged to New or Placed
    INPUT_CHECKED_OUT,
    INPUT_COMPLETED,
    INPUT_CANCELLED,
    INPUT_TIMEOUT,
} InputKind;

typedef struct SagaInput {
    InputKind kind;
    Str tenant;
    Str type;        // "UserCheckedOut"
    Str message_id;  // repeats are dropped by it
    Str traceparent; // of its message, for the messages it causes; empty: none
    uint64_t sequence;
    int64_t received_at_us; // when the stream stored it
    int64_t happened_at_us;
    char correlation_id[UUID_SIZE];
    char order_id[UUID_SIZE];
    char basket_id[UUID_SIZE]; // empty: none
    char token_id[UUID_SIZE];  // INPUT_TIMEOUT
    Str full_name;
    Str email; // normalised
    bool has_total;
    int64_t total_micros;
    char currency[CURRENCY_SIZE];
    const SagaLine *lines; // of INPUT_CHECKED_OUT
    size_t line_count;
    Str reason;
    Str carrier;
    Str tracking_number;
    bool has_refund;
    int64_t refund_micros;
} SagaInput;

// UserCheckedOut, StatusChanged, PlaceOrderTimeout, as they may be written: what the saga reads.
bool saga_input_wants(Str type);
// Texts live in `arena` or in the event. ERROR_PERMANENT names the field and what it should be.
bool saga_input_read(
    const DomainEvent *event, uint64_t sequence, Arena *arena, SagaInput *ret, Error *err);

#define SAGA_FAILED_REASON "no status of the order arrived within its attempts"

// The addressee of the saga's dead letters when they are resent: no trigger can have such a key.
#define SAGA_LETTER_FOR ":order-saga"

// A message of EVENTS of a type that the saga wants. Of a letter for another reader kind
// INPUT_PASSED. ERROR_PERMANENT as above.
bool saga_message_read(
    const BusMessage *message, Str tenant, Str type, Arena *arena, SagaInput *ret, Error *err);

// INPUT_COMPLETED or INPUT_CANCELLED as a packed StatusChanged, to wait for its order.
Str saga_input_pack(const SagaInput *input, Arena *arena);
// The reverse. ERROR_PERMANENT: it is none.
bool saga_input_unpack(
    Str packed, Str tenant, Str message_id, uint64_t sequence, int64_t received_at_us, Arena *arena,
    SagaInput *ret, Error *err);
