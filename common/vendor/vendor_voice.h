// SPDX-License-Identifier: Apache-2.0
// What the builders of calls share: a script that is read out, and the language of the voice. Pure.
#pragma once

#include "common/base/arena.h"

// As text within XML, so that markup in a script is no markup of the call: it is read out as it
// stands. A control character becomes a blank. `text` is UTF-8.
Str vendor_voice_escape(Str text, Arena *arena);
// Of a locale ("de", "de_AT", "de-CH") as both vendors' voices name theirs: "de-DE". A language
// that they have several regions of keeps its own when it is one of these; a language that is not
// in the table goes as it is. Empty for an empty locale: the vendor's own.
Str vendor_voice_language(Str locale, Arena *arena);
