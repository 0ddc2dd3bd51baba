// SPDX-License-Identifier: Apache-2.0
// data-map: every stream and table, what it holds of people, and how an erasure reaches it.
#include <jansson.h>

#include "common/registry/data_places.h"
#include "services/cli/cli.h"

static void add_json(json_t *list, const DataPlace *place)
{
    json_array_append_new(
        list, json_pack(
                  "{s:s, s:s, s:s, s:s, s:s, s:s}", "name", place->name, "role",
                  place_role_name(place->role), "made_of", place->made_of, "personal_data",
                  place_person_name(place->person), "erasure", place->erased, "archive",
                  place->archived));
}

static void print_text(const DataPlace *place)
{
    printf(
        "%-38s %-12s %-7s %s%s%s\n", place->name, place_role_name(place->role),
        place_person_name(place->person), place->erased,
        place->archived[0] != '\0' ? "; archived: " : "", place->archived);
}

int cmd_data_map(Cli *cli)
{
    size_t count;
    const DataPlace *places = data_places(&count);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        if (cli->json) {
            add_json(list, &places[i]);
        } else {
            print_text(&places[i]);
        }
    }
    if (cli->json) {
        print_json_line(list);
    } else {
        json_decref(list);
    }
    return EXIT_DONE;
}
