// SPDX-License-Identifier: Apache-2.0
// /console/login: a one-time link. Law: to open it makes no session and does not use it up; its
// page says whose it is and which session it would end, and only that page's form uses it. So no
// other site, and no mail that a scanner reads, signs a person in or out.
#pragma once

#include "services/gateway/access/console_public.h"

enum { CONSOLE_LINK_BODY_MAX = 256 };

void console_link_show(const ConsolePublic *console, HttpRequest *http);
// The page's form, "token=...".
void console_link_use(const ConsolePublic *console, HttpRequest *http);
