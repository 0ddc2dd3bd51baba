// SPDX-License-Identifier: Apache-2.0
#include "common/orders/input.h"

#include <string.h>

#include "common/codec/event.h"
#include "common/model/address.h"
#include "common/names/event_type.h"
#include "common/names/member.h"
#include "stentor/v1/order.pb-c.h"

enum {
    NAME_MAX_BYTES = 200,
    REASON_MAX_BYTES = 500,
    CARRIER_MAX_BYTES = 64,
    TRACKING_MAX_BYTES = 128,
    PRODUCT_MAX_BYTES = 64,
    QUANTITY_MAX = 1000000,
    MICROS = 1000000,
    CENT = MICROS / 100,
};

// Nine million million units: fits both numeric(18, 2) and a whole number of millionths.
static const int64_t amount_max = INT64_C(9000000000000);

static const char checked_out[] = "UserCheckedOut";
static const char status_changed[] = "StatusChanged";
static const char timeout[] = "PlaceOrderTimeout";

bool saga_input_wants(Str type)
{
    Str plain = event_type_plain(type);
    return str_eq(plain, str_from(checked_out)) || str_eq(plain, str_from(status_changed)) ||
           str_eq(plain, str_from(timeout));
}

// ---- fields ----

static bool refuse(Error *err, const char *field, const char *why)
{
    return error_set(err, ERROR_PERMANENT, "field '%s': %s", field, why);
}

static bool read_text(
    json_t *data, const char *field, size_t max, Arena *arena, Str *ret, Error *err)
{
    const json_t *value = member_value(data, field);
    *ret = STR_EMPTY;
    if (value == NULL) {
        return true;
    }
    if (!json_is_string(value)) {
        return refuse(err, field, "must be text");
    }
    Str text = str_of(json_string_value(value), json_string_length(value));
    if (text.len > max) {
        return error_set(
            err, ERROR_PERMANENT, "field '%s': %zu bytes; at most %zu", field, text.len, max);
    }
    if (str_has_control(text)) {
        return refuse(err, field, "has a control character");
    }
    *ret = arena_str(arena, text);
    return true;
}

static bool read_uuid(json_t *data, const char *field, char out[UUID_SIZE], Error *err)
{
    const json_t *value = member_value(data, field);
    out[0] = '\0';
    if (value == NULL || (json_is_string(value) && json_string_length(value) == 0)) {
        return true;
    }
    Str text = json_is_string(value) ? str_of(json_string_value(value), json_string_length(value))
                                     : STR_EMPTY;
    return uuid_read(text, out) ||
           refuse(err, field, "must be a UUID (HINT: 6f1c9a52-9f0e-4f43-8a37-2f5a3c1d0e11)");
}

static bool require_uuid(json_t *data, const char *field, char out[UUID_SIZE], Error *err)
{
    return read_uuid(data, field, out, err) &&
           (out[0] != '\0' || refuse(err, field, "is required: a UUID"));
}

// ---- amounts ----

// "1234.50": digits, a point, digits of which only the first two are not zero.
static bool decimal_micros(Str text, int64_t *ret)
{
    int64_t micros = 0;
    int64_t scale = 0; // of the next digit; 0: before the point
    bool any = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '.' && scale == 0 && any) {
            scale = MICROS / 10;
            continue;
        }
        bool too_fine = scale != 0 && scale < CENT && c != '0';
        if (c < '0' || c > '9' || too_fine || micros > amount_max * MICROS / 10) {
            return false;
        }
        any = true;
        if (scale == 0) {
            micros = micros * 10 + (int64_t)(c - '0') * MICROS;
        } else {
            micros += (c - '0') * scale;
            scale = scale >= CENT ? scale / 10 : scale;
        }
    }
    *ret = micros;
    return any && text.ptr[text.len - 1] != '.';
}

// A JSON number with a point is binary: the nearest whole hundredths are meant.
static bool real_micros(double value, int64_t *ret)
{
    double cents = value * 100;
    if (!(cents >= 0 && cents <= (double)amount_max * 100)) {
        return false;
    }
    int64_t whole = (int64_t)(cents + 0.5);
    double off = cents - (double)whole;
    double slack = 1e-6 + cents * 1e-15;
    *ret = whole * CENT;
    return off <= slack && off >= -slack;
}

static bool read_money(const json_t *value, int64_t *ret)
{
    if (json_is_integer(value)) {
        json_int_t units = json_integer_value(value);
        *ret = units >= 0 && units <= amount_max ? units * MICROS : -1;
        return *ret >= 0;
    }
    if (json_is_string(value)) {
        return decimal_micros(str_of(json_string_value(value), json_string_length(value)), ret);
    }
    return json_is_real(value) && real_micros(json_real_value(value), ret);
}

typedef struct AmountNames {
    const char *micros, *money, *plain;
} AmountNames;

static bool read_amount(
    json_t *data, const AmountNames *names, bool *ret_has, int64_t *ret, Error *err)
{
    const json_t *micros = member_value(data, names->micros);
    const json_t *money = member_value(data, names->money);
    const char *name = money != NULL ? names->money : names->plain;
    money = money != NULL ? money : member_value(data, names->plain);
    *ret_has = micros != NULL || money != NULL;
    *ret = 0;
    if (micros != NULL) {
        *ret = json_is_integer(micros) ? json_integer_value(micros) : -1;
        return (*ret >= 0 && *ret <= amount_max * MICROS && *ret % CENT == 0) ||
               refuse(
                   err, names->micros, "must be a whole number of millionths, a multiple of 10000");
    }
    return money == NULL || (read_money(money, ret) && *ret <= amount_max * MICROS) ||
           refuse(err, name, "must be an amount from 0 to 9000000000000 with at most two decimals");
}

static bool read_currency(json_t *data, Arena *arena, char out[CURRENCY_SIZE], Error *err)
{
    Str text = STR_EMPTY;
    if (!read_text(data, "currency", CURRENCY_SIZE - 1, arena, &text, err)) {
        return false;
    }
    text = text.len == 0 ? STR("USD") : text;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < 'A' || text.ptr[i] > 'Z') {
            return refuse(err, "currency", "must be a currency of ISO 4217, such as USD");
        }
    }
    return (str_to_c(text, out, CURRENCY_SIZE) && text.len == CURRENCY_SIZE - 1) ||
           refuse(err, "currency", "must be a currency of ISO 4217, such as USD");
}

// ---- lines ----

static const json_t *first_of(json_t *data, const char *const *names, size_t count)
{
    const json_t *value = NULL;
    for (size_t i = 0; i < count && value == NULL; i++) {
        value = member_value(data, names[i]);
    }
    return value;
}

static bool read_quantity(json_t *line, int64_t *ret, Error *err)
{
    const json_t *value = member_value(line, "quantity");
    *ret = value == NULL ? 1 : json_is_integer(value) ? json_integer_value(value) : 0;
    return (*ret >= 1 && *ret <= QUANTITY_MAX) ||
           refuse(err, "quantity", "must be a whole number from 1 to 1000000");
}

// Some shops number their products.
static bool read_product(json_t *line, Arena *arena, Str *ret, Error *err)
{
    const json_t *value = member_value(line, "product_id");
    if (!json_is_integer(value)) {
        return read_text(line, "product_id", PRODUCT_MAX_BYTES, arena, ret, err);
    }
    *ret = str_from(arena_printf(arena, "%" JSON_INTEGER_FORMAT, json_integer_value(value)));
    return true;
}

static bool read_line(json_t *line, Arena *arena, SagaLine *ret, Error *err)
{
    static const AmountNames price = {"price_micros", "price_money", "price"};
    static const AmountNames unit_price = {"price_micros", "price_money", "unit_price"};
    bool has = false;
    if (!json_is_object(line)) {
        return error_set(err, ERROR_PERMANENT, "must be an object");
    }
    const AmountNames *names = member_value(line, "price") != NULL ? &price : &unit_price;
    return read_product(line, arena, &ret->product_id, err) &&
           read_text(line, "name", NAME_MAX_BYTES, arena, &ret->name, err) &&
           read_quantity(line, &ret->quantity, err) &&
           read_amount(line, names, &has, &ret->price_micros, err);
}

static bool read_lines(json_t *data, Arena *arena, SagaInput *in, Error *err)
{
    static const char *const names[] = {"lines", "order_lines", "order_items", "items"};
    const json_t *list = first_of(data, names, sizeof names / sizeof names[0]);
    size_t count = json_array_size(list);
    if (list == NULL) {
        return true;
    }
    if (!json_is_array(list) || count > ORDER_LINES_MAX) {
        return refuse(err, "lines", "must be an array of at most 100 lines");
    }
    SagaLine *lines = arena_array(arena, count + 1, sizeof *lines);
    for (size_t i = 0; i < count; i++) {
        lines[i] = (SagaLine){.product_id = STR_EMPTY, .name = STR_EMPTY};
        if (!read_line(json_array_get(list, i), arena, &lines[i], err)) {
            return error_wrap(err, "field 'lines', line %zu", i + 1);
        }
    }
    in->lines = lines;
    in->line_count = count;
    return true;
}

// ---- events ----

static bool read_email(json_t *data, Arena *arena, Str *ret, Error *err)
{
    Str text = STR_EMPTY;
    char reason[ADDRESS_REASON_SIZE];
    if (!read_text(data, "email", ADDRESS_MAX, arena, &text, err)) {
        return false;
    }
    if (text.len == 0) {
        return refuse(err, "email", "is required");
    }
    return address_parse(text, arena, ret, reason) || refuse(err, "email", reason);
}

// correlation_id defaults to order_id.
static bool read_ids(json_t *data, SagaInput *in, Error *err)
{
    if (!read_uuid(data, "correlation_id", in->correlation_id, err) ||
        !read_uuid(data, "order_id", in->order_id, err)) {
        return false;
    }
    if (in->correlation_id[0] == '\0') {
        memcpy(in->correlation_id, in->order_id, UUID_SIZE);
    }
    return in->correlation_id[0] != '\0' || refuse(err, "order_id", "is required: a UUID");
}

static bool read_checked_out(json_t *data, Arena *arena, SagaInput *in, Error *err)
{
    static const AmountNames total = {"total_micros", "total_money", "total"};
    in->kind = INPUT_CHECKED_OUT;
    return read_ids(data, in, err) && require_uuid(data, "order_id", in->order_id, err) &&
           read_uuid(data, "basket_id", in->basket_id, err) &&
           read_text(data, "full_name", NAME_MAX_BYTES, arena, &in->full_name, err) &&
           read_email(data, arena, &in->email, err) &&
           read_amount(data, &total, &in->has_total, &in->total_micros, err) &&
           read_currency(data, arena, in->currency, err) && read_lines(data, arena, in, err);
}

static bool read_status(json_t *data, Arena *arena, InputKind *ret, Error *err)
{
    static const struct {
        const char *name;
        InputKind kind;
    } names[] = {
        {"Completed", INPUT_COMPLETED}, {"Cancelled", INPUT_CANCELLED},
        {"Canceled", INPUT_CANCELLED},  {"New", INPUT_PASSED},
        {"Placed", INPUT_PASSED},
    };
    Str text = STR_EMPTY;
    if (!read_text(data, "status", NAME_MAX_BYTES, arena, &text, err)) {
        return false;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (str_eq_nocase(text, str_from(names[i].name))) {
            *ret = names[i].kind;
            return true;
        }
    }
    return refuse(err, "status", "must be New, Placed, Completed or Cancelled");
}

static bool read_status_changed(json_t *data, Arena *arena, SagaInput *in, Error *err)
{
    static const AmountNames refund = {"refund_micros", "refund_money", "refund"};
    if (!read_status(data, arena, &in->kind, err) || in->kind == INPUT_PASSED) {
        return err->kind == ERROR_NONE;
    }
    bool ok =
        read_ids(data, in, err) &&
        read_text(data, "reason", REASON_MAX_BYTES, arena, &in->reason, err) &&
        read_text(data, "carrier", CARRIER_MAX_BYTES, arena, &in->carrier, err) &&
        read_text(data, "tracking_number", TRACKING_MAX_BYTES, arena, &in->tracking_number, err) &&
        read_amount(data, &refund, &in->has_refund, &in->refund_micros, err);
    // In protobuf 0 means absent; and a refund of nothing is not mentioned.
    in->has_refund = in->has_refund && in->refund_micros > 0;
    return ok;
}

bool saga_input_read(
    const DomainEvent *event, uint64_t sequence, Arena *arena, SagaInput *ret, Error *err)
{
    SagaInput in = {
        .tenant = event->tenant,
        .type = event->type,
        .message_id = arena_str(arena, event->identity),
        .traceparent = STR_EMPTY,
        .sequence = sequence,
        .received_at_us = event->stored_at_us,
        .happened_at_us = event->id_at_us,
    };
    bool ok = false;
    error_clear(err);
    if (str_eq(event->type, str_from(checked_out))) {
        ok = read_checked_out(event->data, arena, &in, err);
    } else if (str_eq(event->type, str_from(status_changed))) {
        ok = read_status_changed(event->data, arena, &in, err);
    } else if (str_eq(event->type, str_from(timeout))) {
        in.kind = INPUT_TIMEOUT;
        ok = require_uuid(event->data, "correlation_id", in.correlation_id, err) &&
             require_uuid(event->data, "token_id", in.token_id, err);
    } else {
        (void)error_set(err, ERROR_PERMANENT, "the event type is not one that order-saga reads");
    }
    if (ok) {
        *ret = in;
    }
    return ok;
}

bool saga_message_read(
    const BusMessage *message, Str tenant, Str type, Arena *arena, SagaInput *ret, Error *err)
{
    DomainInput input = domain_input(message, tenant, type, NULL);
    DomainEvent event;
    if (!domain_event_read(&input, arena, &event, err)) {
        return false;
    }
    *ret = (SagaInput){.kind = INPUT_PASSED};
    bool ours = event.only.len == 0 || str_eq(event.only, STR(SAGA_LETTER_FOR));
    bool ok = !ours || saga_input_read(&event, bus_message_place(message), arena, ret, err);
    ret->traceparent = message->traceparent;
    domain_event_free(&event);
    return ok;
}

// ---- events that wait for their order ----

Str saga_input_pack(const SagaInput *in, Arena *arena)
{
    Stentor__V1__StatusChanged message;
    stentor__v1__status_changed__init(&message);
    message.correlation_id = arena_cstr(arena, str_from(in->correlation_id));
    message.order_id = arena_cstr(arena, str_from(in->order_id));
    message.status =
        arena_cstr(arena, in->kind == INPUT_COMPLETED ? STR("Completed") : STR("Cancelled"));
    message.reason = arena_cstr(arena, in->reason);
    message.carrier = arena_cstr(arena, in->carrier);
    message.tracking_number = arena_cstr(arena, in->tracking_number);
    message.refund_micros = in->has_refund ? in->refund_micros : 0;
    Str packed = STR_EMPTY;
    (void)event_pack(&message.base, arena, &packed, NULL); // far below the limit
    return packed;
}

bool saga_input_unpack(
    Str packed, Str tenant, Str message_id, uint64_t sequence, int64_t received_at_us, Arena *arena,
    SagaInput *ret, Error *err)
{
    DomainInput input = {
        .tenant = tenant,
        .type = str_from(status_changed),
        .payload = packed,
        .message_id = message_id,
        .stream = "EVENTS",
        .sequence = sequence,
        .stored_at_us = received_at_us,
        .content_type = STR("application/protobuf"),
    };
    DomainEvent event;
    if (!domain_event_read(&input, arena, &event, err)) {
        return false;
    }
    bool ok = saga_input_read(&event, sequence, arena, ret, err);
    domain_event_free(&event);
    return ok &&
           (ret->kind != INPUT_PASSED ||
            error_set(
                err, ERROR_PERMANENT, "the stored event has no status that changes an order"));
}
