// SPDX-License-Identifier: Apache-2.0
// The country of a phone number in E.164, by the longest beginning of it that is in a table: the
// calling codes of the ITU, and the area codes of +1, +7, +44 and others that several countries
// share. It is the country that issued the number, wherever its owner is. Pure.
// Source: ITU-T E.164, list of assigned country codes; NANPA, area codes in service.
#pragma once

#include "common/base/str.h"

// "DE" (ISO 3166 alpha-2; "XK" for Kosovo). Empty: no number in E.164, or one of no country, such
// as +1 800 or a satellite's.
Str calling_code_country(Str number);
// The n-th row, for tests: its digits; empty behind the last.
Str calling_code_at(size_t n, Str *ret_country);
