// SPDX-License-Identifier: Apache-2.0
#include "common/domain/order_data.h"

#include "common/names/member.h"

static bool is_order(Str type)
{
    static const char *const types[] = {
        "UserCheckedOut", "StatusChanged", "PlaceOrder",
        "CompleteOrder",  "CancelOrder",   "OrderFailed",
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (str_eq(type, str_from(types[i]))) {
            return true;
        }
    }
    return false;
}

typedef struct Amount {
    const char *name, *micros, *money;
} Amount;

static void add(json_t *object, const Amount *amount)
{
    json_t *micros = member_value(object, amount->micros);
    json_t *money = member_value(object, amount->money);
    if (member_value(object, amount->name) != NULL) {
        return;
    }
    if (json_is_integer(micros)) {
        double value = (double)json_integer_value(micros) / 1e6;
        (void)json_object_set_new(object, amount->name, json_real(value));
    } else if (json_is_number(money) || json_is_string(money)) {
        (void)json_object_set(object, amount->name, money);
    }
}

void order_data_complete(Str type, json_t *data)
{
    static const Amount total = {"total", "total_micros", "total_money"};
    static const Amount refund = {"refund", "refund_micros", "refund_money"};
    static const Amount price = {"price", "price_micros", "price_money"};
    if (!is_order(type)) {
        return;
    }
    add(data, &total);
    add(data, &refund);
    const json_t *lines = member_value(data, "lines");
    for (size_t i = 0; i < json_array_size(lines); i++) {
        json_t *line = json_array_get(lines, i);
        if (json_is_object(line)) {
            add(line, &price);
        }
    }
}
