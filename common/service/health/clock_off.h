// SPDX-License-Identifier: Apache-2.0
// Is a server's clock the same as ours? Times go from machine to machine here: when a mail is due,
// when it has expired, when quiet hours begin. Pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { CLOCK_OFF_LIMIT_S = 5 };

// The server read its clock between our question and its answer: how far it then lies outside
// of that span; 0: within. Above 0: the server is ahead of us.
int64_t clock_off_us(int64_t server_us, int64_t asked_us, int64_t answered_us);
bool clock_is_off(int64_t off_us);

typedef struct ClockCheck {
    const char *server; // "Postgres"
    bool off;           // as logged
    int64_t off_us;
} ClockCheck;

// Logs when it goes wrong and when it is right again.
void clock_check_note(ClockCheck *check, int64_t off_us);
