// SPDX-License-Identifier: Apache-2.0
// The options of archiving units, which the service reads and hands to its child process.
#pragma once

#include "common/service/options.h"
#include "common/storage/storage.h"

typedef struct ArchiveSettings {
    const char *spool_folder;
    const char *cold_class;
    const char *quiet_hours;
    int64_t part_kib;
    int64_t part_rows;
    int64_t grace_s;
    int64_t every_s;
    bool facts;
} ArchiveSettings;

typedef struct QuietHours {
    int from, until; // hours of UTC; the same: always
} QuietHours;

// ERROR_CONFIG names the setting that the child would refuse.
bool archive_settings_check(const ArchiveSettings *settings, Error *err);
// "1-5", "22-4"; empty: always. ERROR_CONFIG: it is neither.
bool archive_quiet_parse(const char *text, QuietHours *ret, Error *err);
bool archive_is_quiet(QuietHours hours, int64_t now_us);

// clang-format off
#define ARCHIVE_ROWS(type, field) \
    {"STENTOR_ARCHIVE_SPOOL_DIR", OPTION_TEXT, offsetof(type, field.spool_folder), "/var/tmp", 0, 0, false, \
     "folder for one archive file under way"}, \
    {"STENTOR_ARCHIVE_PART_KIB", OPTION_INT, offsetof(type, field.part_kib), "262144", 16, 1048576, false, \
     "size at which an archive file ends, in KiB"}, \
    {"STENTOR_ARCHIVE_PART_ROWS", OPTION_INT, offsetof(type, field.part_rows), "5000000", 1, 100000000, false, \
     "rows at which an archive file ends"}, \
    {"STENTOR_ARCHIVE_QUIET_HOURS", OPTION_TEXT, offsetof(type, field.quiet_hours), "1-5", 0, 0, false, \
     "hours of UTC in which archived months are detached from their tables; empty: at any"}, \
    {"STENTOR_ARCHIVE_GRACE_S", OPTION_INT, offsetof(type, field.grace_s), "604800", 0, 7776000, false, \
     "seconds between detaching an archived month and dropping it"}, \
    {"STENTOR_ARCHIVE_EVERY_S", OPTION_INT, offsetof(type, field.every_s), "3600", 1, 604800, false, \
     "seconds between two looks for months to archive"}, \
    {"STENTOR_ARCHIVE_COLD_CLASS", OPTION_TEXT, offsetof(type, field.cold_class), "", 0, 0, false, \
     "storage class of the cold tier, readable at once: GLACIER_IR; empty: the bucket's default"}, \
    {"STENTOR_FACTS", OPTION_BOOL, offsetof(type, field.facts), "false", 0, 0, false, \
     "write each day's facts to object storage, for analytics"}
// clang-format on
