// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/reply_words.h"

typedef struct Word {
    const char *text; // ASCII letters in any case, others as they stand
    ReplyWord word;
} Word;

// YES is none of them: it is the answer to a question, too.
// clang-format off
static const Word WORDS[] = {
    {"STOP",        REPLY_WORD_STOP}, {"STOPALL",     REPLY_WORD_STOP}, {"STOP ALL",    REPLY_WORD_STOP},
    {"UNSUBSCRIBE", REPLY_WORD_STOP}, {"CANCEL",      REPLY_WORD_STOP}, {"END",         REPLY_WORD_STOP},
    {"QUIT",        REPLY_WORD_STOP}, {"OPTOUT",      REPLY_WORD_STOP}, {"REVOKE",      REPLY_WORD_STOP},
    {"STOPP",       REPLY_WORD_STOP}, {"ABMELDEN",    REPLY_WORD_STOP},                                     // de
    {"ARRET",       REPLY_WORD_STOP}, {"ARRÊT",       REPLY_WORD_STOP}, {"arrêt",       REPLY_WORD_STOP},   // fr
    {"BAJA",        REPLY_WORD_STOP}, {"ALTO",        REPLY_WORD_STOP}, {"PARAR",       REPLY_WORD_STOP},   // es, pt
    {"SAIR",        REPLY_WORD_STOP}, {"CANCELAR",    REPLY_WORD_STOP}, {"FERMA",       REPLY_WORD_STOP},   // pt, es, it
    {"AFMELDEN",    REPLY_WORD_STOP}, {"IPTAL",       REPLY_WORD_STOP}, {"İPTAL",       REPLY_WORD_STOP},   // nl, tr
    {"СТОП",        REPLY_WORD_STOP}, {"стоп",        REPLY_WORD_STOP}, {"Стоп",        REPLY_WORD_STOP},   // ru, uk
    {"إيقاف",       REPLY_WORD_STOP}, {"停止",        REPLY_WORD_STOP},                                     // ar, ja, zh
    {"START",       REPLY_WORD_START}, {"UNSTOP",     REPLY_WORD_START}, {"ANMELDEN",   REPLY_WORD_START},
    {"REPRENDRE",   REPLY_WORD_START}, {"ALTA",       REPLY_WORD_START}, {"AANMELDEN",  REPLY_WORD_START},
    {"СТАРТ",       REPLY_WORD_START}, {"старт",      REPLY_WORD_START}, {"Старт",      REPLY_WORD_START},
    {"HELP",        REPLY_WORD_HELP}, {"INFO",        REPLY_WORD_HELP}, {"HILFE",       REPLY_WORD_HELP},
    {"AIDE",        REPLY_WORD_HELP}, {"AYUDA",       REPLY_WORD_HELP}, {"AJUDA",       REPLY_WORD_HELP},
    {"AIUTO",       REPLY_WORD_HELP}, {"ПОМОЩЬ",      REPLY_WORD_HELP}, {"помощь",      REPLY_WORD_HELP},
};
// clang-format on

ReplyWord reply_word(Str text)
{
    text = str_trim(text);
    while (str_ends(text, STR(".")) || str_ends(text, STR("!"))) {
        text = str_trim(str_slice(text, 0, text.len - 1));
    }
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++) {
        if (str_eq_nocase(text, str_from(WORDS[i].text))) {
            return WORDS[i].word;
        }
    }
    return REPLY_WORD_NONE;
}
