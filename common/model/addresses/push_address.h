// SPDX-License-Identifier: Apache-2.0
// The address of a push. Its form says whose it is, so that none is ever sent to a vendor that did
// not give it: a browser's subscription is JSON, a device token of APNs is hexadecimal, and what is
// neither is a registration token of FCM. Pure.
#pragma once

#include "common/base/arena.h"
#include "common/model/address.h"

enum {
    PUSH_ADDRESS_MAX = 4096,
    PUSH_DEVICE_MIN = 64, // hexadecimal digits of an APNs token
    PUSH_DEVICE_MAX = 200,
    PUSH_POINT_LEN = 65, // bytes of p256dh: an uncompressed point of P-256
    PUSH_AUTH_LEN = 16,
};

typedef enum PushAddressKind {
    PUSH_REGISTRATION, // FCM
    PUSH_DEVICE,       // APNs
    PUSH_SUBSCRIPTION, // Web Push
} PushAddressKind;

PushAddressKind push_address_kind(Str address);

// *ret is normalised, in `arena`, so that the same device has one address: a device token in lower
// case; a subscription as {"endpoint","keys":{"auth","p256dh"}} without blanks and other members.
bool push_address_check(Str text, Arena *arena, Str *ret, char reason[ADDRESS_REASON_SIZE]);
