// SPDX-License-Identifier: Apache-2.0
// What a person was sent, as it was rendered, for the export.
#pragma once

#include "common/access/access_export.h"
#include "services/cli/cli.h"

enum { EXPORT_CONTENTS_MAX = 1000 }; // the newest; beyond them is a gap

// Sets the section "contents" of export->root: of each of its notifications whose content is still
// kept. What was erased is left out.
bool export_contents(Cli *cli, AccessExport *export, Error *err);
