// SPDX-License-Identifier: Apache-2.0
// Epoch keys are a new installation's default. FOLDER/epoch-keys holds where they are, or "none",
// so that a later run writes the same settings; one that began without them stays so until it is
// asked.
#include <errno.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "services/cli/init/init.h"

#define EPOCHS_FILE "epoch-keys"
#define NONE "none"
#define KEEPER_USER "stentor-" INIT_KEEPER

enum { READERS_MODE = 02750, OWN_MODE = 0700 };

// Not below FOLDER, which backups hold.
static const char *default_folder(Cli *cli)
{
    const char *seen = args_flag(&cli->args, "seen-as");
    const char *folder = seen != NULL ? seen : init_folder(cli);
    Str name = str_from(folder);
    while (name.len > 1 && name.ptr[name.len - 1] == '/') {
        name.len--;
    }
    if (str_eq(name, STR(INIT_FOLDER))) {
        return "/var/lib/stentor-epochs";
    }
    char here[4096];
    if (folder[0] == '/' || getcwd(here, sizeof here) == NULL) {
        return arena_printf(cli->arena, STR_FMT "-epochs", STR_ARG(name));
    }
    return arena_printf(cli->arena, "%s/" STR_FMT "-epochs", here, STR_ARG(name));
}

bool init_epochs_choose(Cli *cli, const char **ret, Error *err)
{
    const char *asked = args_flag(&cli->args, EPOCHS_FILE);
    Str text = STR_EMPTY, key = STR_EMPTY;
    bool there = false, is_old = false;
    if (asked != NULL) {
        *ret = asked;
        return ((asked[0] == '/' || strcmp(asked, NONE) == 0) &&
                !str_has_control(str_from(asked))) ||
               error_set(
                   err, ERROR_USAGE, "--epoch-keys '%.80s': expected a whole path, or " NONE,
                   asked);
    }
    if (!init_read(cli, EPOCHS_FILE, &text, &there, err) ||
        !init_read(cli, "master.key", &key, &is_old, err)) {
        return false;
    }
    *ret = there ? arena_cstr(cli->arena, text) : is_old ? NONE : default_folder(cli);
    return true;
}

bool init_epochs_folder(Cli *cli, const char **ret, Error *err)
{
    const char *text = init_text(cli, EPOCHS_FILE, err);
    *ret = text != NULL && strcmp(text, NONE) != 0 ? text : NULL;
    return text != NULL;
}

const char *init_dumps_folder(Cli *cli, const char *epochs)
{
    return arena_printf(cli->arena, "%s-dumps", epochs);
}

static bool fail(const char *path, Error *err)
{
    return error_set(
        err, ERROR_CONFIG,
        "cannot make '%s' for epoch keys: %s (HINT: --epoch-keys DIR, or " NONE ")", path,
        strerror(errno));
}

// One that is there stays as it is: the package, a volume or the operator has made it. Its rights
// are right from its first moment, so a run that is killed leaves none without them.
static bool make(Cli *cli, const char *path, uid_t owner, gid_t group, mode_t mode, Error *err)
{
    const char *fresh = arena_printf(cli->arena, "%s.new", path);
    struct stat there;
    if (stat(path, &there) == 0) {
        cli_step(cli, path, "present");
        return true;
    }
    if ((mkdir(fresh, OWN_MODE) != 0 && errno != EEXIST) || chown(fresh, owner, group) != 0 ||
        chmod(fresh, mode) != 0 || rename(fresh, path) != 0) {
        return fail(path, err);
    }
    cli_step(cli, path, "made");
    return true;
}

bool init_epochs_make(Cli *cli, gid_t readers, Error *err)
{
    const char *folder = NULL;
    if (!init_epochs_folder(cli, &folder, err)) {
        return false;
    }
    if (folder == NULL || args_flag(&cli->args, "seen-as") != NULL) {
        return true;
    }
    const struct passwd *keeper = geteuid() == 0 ? getpwnam(KEEPER_USER) : NULL;
    uid_t owner = keeper != NULL ? keeper->pw_uid : (uid_t)-1;
    gid_t own = keeper != NULL ? keeper->pw_gid : (gid_t)-1;
    return make(cli, folder, owner, readers, READERS_MODE, err) &&
           make(cli, init_dumps_folder(cli, folder), owner, own, OWN_MODE, err);
}
