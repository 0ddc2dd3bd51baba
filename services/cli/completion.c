// SPDX-License-Identifier: Apache-2.0
// completion: what bash, zsh and fish need to complete `stentor`, made from the command table. Each
// script finds the command among the words before the cursor (past the settings' flags) and offers
// its second word, its flags, or the choices of a value that the help names (--format csv|ndjson).
#include <string.h>

#include "common/base/buf.h"
#include "services/cli/cli.h"

enum { SCRIPT_MAX = 1024 * 1024 };

// ---- what the table says ----

static Str first_word(const Command *command)
{
    return str_of(command->name, strcspn(command->name, " "));
}

static bool is_choice(Str word)
{
    bool any = false;
    for (size_t i = 0; i < word.len; i++) {
        char c = word.ptr[i];
        any = any || c == '|';
        if (!((c >= 'a' && c <= 'z') || c == '-' || c == '_' || c == '|')) {
            return false;
        }
    }
    return any;
}

static Str word_at(const char *text)
{
    return str_of(text, strcspn(text, " \n,;"));
}

// "csv|ndjson" of a flag, from its line of the help; empty: none is named.
static Str choices_of(const Command *command, Str flag)
{
    for (const char *at = command->help; (at = strstr(at, "--")) != NULL; at += 2) {
        if (strncmp(at + 2, flag.ptr, flag.len) == 0 && at[2 + flag.len] == ' ') {
            Str word = word_at(at + 3 + flag.len);
            if (is_choice(word)) {
                return word;
            }
        }
    }
    return STR_EMPTY;
}

static void put_choices(Buf *out, Str choices)
{
    for (size_t i = 0; i < choices.len; i++) {
        buf_char(out, choices.ptr[i] == '|' ? ' ' : choices.ptr[i]);
    }
}

// Is it the first row with this first word? Groups need not stand together.
static bool begins_group(const CommandTable *table, int at)
{
    for (int i = 0; i < at; i++) {
        if (str_eq(first_word(&table->rows[i]), first_word(&table->rows[at]))) {
            return false;
        }
    }
    return true;
}

static const char *second_word(const Command *command)
{
    const char *space = strchr(command->name, ' ');
    return space != NULL ? space + 1 : NULL;
}

// STENTOR_NATS_URL -> --nats-url
static void put_setting(Buf *out, const Option *row)
{
    buf_cstr(out, "--");
    for (const char *c = row->name + sizeof "STENTOR_" - 1; *c != '\0'; c++) {
        buf_char(out, *c == '_' ? '-' : (char)(*c - 'A' + 'a'));
    }
}

static void put_settings(Buf *out, const CommandTable *table, bool switches)
{
    for (size_t i = 0; i < table->setting_count; i++) {
        if ((table->settings[i].type == OPTION_BOOL) == switches) {
            buf_char(out, ' ');
            put_setting(out, &table->settings[i]);
        }
    }
}

// In quotes that bash, zsh and fish read alike; the help's first line has no quote of these.
static void put_about(Buf *out, const Command *command)
{
    for (const char *c = command->help; *c != '\0' && *c != '\n'; c++) {
        buf_cstr(out, *c == '\'' || *c == '\\' ? "" : *c == ':' ? " -" : (char[]){*c, '\0'});
    }
}

// ---- bash and zsh: functions that both read ----

static void put_case(Buf *out, const char *function, const char *what)
{
    buf_printf(out, "%s() { # %s\n    case $1 in\n", function, what);
}

static void end_case(Buf *out)
{
    buf_cstr(out, "    esac\n}\n");
}

static void put_words(Buf *out, const CommandTable *table)
{
    put_case(out, "_stentor_words", "\"\" or the first word of a command: what may stand next");
    buf_cstr(out, "    '') echo 'help");
    for (int i = 0; i < table->count; i++) {
        if (begins_group(table, i)) {
            buf_printf(out, " " STR_FMT, STR_ARG(first_word(&table->rows[i])));
        }
    }
    buf_cstr(out, "' ;;\n");
    for (int i = 0; i < table->count; i++) {
        if (!begins_group(table, i)) {
            continue;
        }
        Str group = first_word(&table->rows[i]);
        bool any = false;
        for (int j = i; j < table->count; j++) {
            const char *second = second_word(&table->rows[j]);
            if (second != NULL && str_eq(first_word(&table->rows[j]), group)) {
                if (!any) {
                    buf_printf(out, "    '" STR_FMT "') echo '", STR_ARG(group));
                }
                buf_printf(out, any ? " %s" : "%s", second);
                any = true;
            }
        }
        buf_cstr(out, any ? "' ;;\n" : "");
    }
    end_case(out);
}

static void put_flags(Buf *out, const CommandTable *table)
{
    put_case(out, "_stentor_flags", "a command");
    buf_cstr(out, "    '') echo '--config --help");
    put_settings(out, table, false);
    put_settings(out, table, true);
    buf_cstr(out, "' ;;\n");
    for (int i = 0; i < table->count; i++) {
        Str rest = {0};
        CommandFlag flag;
        buf_printf(out, "    '%s') echo '--help", table->rows[i].name);
        while (command_flag(&table->rows[i], &rest, &flag)) {
            buf_printf(out, " --" STR_FMT, STR_ARG(flag.name));
        }
        buf_cstr(out, "' ;;\n");
    }
    end_case(out);
}

static void put_values(Buf *out, const CommandTable *table)
{
    put_case(out, "_stentor_values", "a command, and a flag of it that takes a value: the choices");
    for (int i = 0; i < table->count; i++) {
        const Command *command = &table->rows[i];
        Str rest = {0}, choices = word_at(command->usage);
        CommandFlag flag;
        if (is_choice(choices)) {
            buf_printf(out, "    '%s') echo '", command->name);
            put_choices(out, choices);
            buf_cstr(out, "' ;;\n");
        }
        while (command_flag(command, &rest, &flag)) {
            if (flag.takes_value) {
                buf_printf(
                    out, "    '%s --" STR_FMT "') echo '", command->name, STR_ARG(flag.name));
                put_choices(out, choices_of(command, flag.name));
                buf_cstr(out, "' ;;\n");
            }
        }
    }
    buf_cstr(out, "    *) return 1 ;;\n");
    end_case(out);
}

// $1...: the words before the cursor, without the program. Sets `command` and `previous`.
static void put_find(Buf *out, const CommandTable *table)
{
    buf_cstr(
        out, "_stentor_find() { # the words between the program and the one that is completed\n"
             "    command='' previous='' given=0\n"
             "    while [ $# -gt 0 ]; do\n"
             "        case \"$command $1\" in\n"
             "        ' --'*=*");
    for (size_t i = 0; i < table->setting_count; i++) {
        if (table->settings[i].type == OPTION_BOOL) {
            buf_cstr(out, " | ' ");
            put_setting(out, &table->settings[i]);
            buf_char(out, '\'');
        }
    }
    buf_cstr(
        out, ") ;;\n"
             "        ' --'*) [ $# = 1 ] && previous=$1; shift; [ $# -gt 0 ] || return 0 ;;\n"
             "        ' '*) command=$1 ;;\n"
             "        *' --'*) ;;\n"
             "        *) case \" $(_stentor_words \"$command\") \" in\n"
             "            *\" $1 \"*) command=\"$command $1\" ;;\n"
             "            *) given=$((given + 1)) ;;\n"
             "            esac ;;\n"
             "        esac\n"
             "        previous=$1\n"
             "        shift\n"
             "    done\n"
             "}\n"
             "_stentor_offer() { # the word that is completed; prints what may stand there; 1: a "
             "file's name\n"
             "    if [ \"$command\" != '' ] && _stentor_values \"$command $previous\"; then\n"
             "        [ \"$(_stentor_values \"$command $previous\")\" != '' ]\n"
             "        return\n"
             "    fi\n"
             "    case \"$command/$previous/$1\" in\n"
             "    /--*) return 1 ;;\n"
             "    help*) _stentor_words '' ;;\n"
             "    */-*) _stentor_flags \"$command\" ;;\n"
             "    *)\n"
             "        [ $given = 0 ] || return 1\n"
             "        _stentor_words \"$command\"\n"
             "        [ \"$command\" = '' ] || _stentor_values \"$command\" ||\n"
             "            [ \"$(_stentor_words \"$command\")\" != '' ] ;;\n"
             "    esac\n"
             "}\n");
}

static void put_posix(Buf *out, const CommandTable *table)
{
    put_words(out, table);
    put_flags(out, table);
    put_values(out, table);
    put_find(out, table);
}

static void put_bash(Buf *out, const CommandTable *table)
{
    buf_cstr(out, "# bash completion of stentor " STENTOR_VERSION ": stentor completion bash\n");
    put_posix(out, table);
    buf_cstr(
        out, "_stentor() {\n"
             "    local command previous given offered current=${COMP_WORDS[COMP_CWORD]}\n"
             "    [ \"$current\" != = ] || current=''\n"
             "    local -a before=(\"${COMP_WORDS[@]:1:COMP_CWORD-1}\")\n"
             "    # readline cuts --flag=value into three words\n"
             "    [ \"${before[*]: -1}\" != = ] || unset 'before[-1]'\n"
             "    _stentor_find \"${before[@]}\"\n"
             "    COMPREPLY=()\n"
             "    offered=$(_stentor_offer \"$current\") || return 0\n"
             "    mapfile -t COMPREPLY < <(compgen -W \"$offered\" -- \"$current\")\n"
             "}\n"
             "complete -o default -F _stentor stentor\n");
}

static void put_zsh(Buf *out, const CommandTable *table)
{
    buf_cstr(
        out, "#compdef stentor\n# zsh completion of stentor " STENTOR_VERSION
             ": stentor completion zsh\n");
    put_posix(out, table);
    buf_cstr(out, "_stentor_about() { # COMMAND: what it does\n    case $1 in\n");
    for (int i = 0; i < table->count; i++) {
        buf_printf(out, "    '%s') echo '", table->rows[i].name);
        put_about(out, &table->rows[i]);
        buf_cstr(out, "' ;;\n");
    }
    buf_cstr(
        out, "    esac\n}\n"
             "_stentor() {\n"
             "    local command previous given offered word\n"
             "    local -a described\n"
             "    _stentor_find \"${(@)words[2,CURRENT-1]}\"\n"
             "    if offered=$(_stentor_offer \"$words[CURRENT]\"); then\n"
             "        for word in ${=offered}; do\n"
             "            described+=(\"$word:$(_stentor_about \"${command:+$command }$word\")\")\n"
             "        done\n"
             "        _describe -t values 'stentor' described\n"
             "    else\n"
             "        _files\n"
             "    fi\n"
             "}\n"
             "if [ \"$funcstack[1]\" = _stentor ]; then _stentor \"$@\"; else compdef _stentor "
             "stentor; fi\n");
}

// ---- fish ----

static void put_fish_flags(Buf *out, const Command *command)
{
    Str rest = {0};
    CommandFlag flag;
    while (command_flag(command, &rest, &flag)) {
        buf_printf(
            out, "complete -c stentor -n '__stentor_is \"%s\"' -l " STR_FMT, command->name,
            STR_ARG(flag.name));
        Str choices = flag.takes_value ? choices_of(command, flag.name) : STR_EMPTY;
        buf_cstr(out, flag.takes_value ? " -r" : "");
        if (choices.len > 0) {
            buf_cstr(out, " -f -a '");
            put_choices(out, choices);
            buf_char(out, '\'');
        }
        buf_char(out, '\n');
    }
    if (is_choice(word_at(command->usage))) {
        buf_printf(out, "complete -c stentor -n '__stentor_is \"%s\"' -f -a '", command->name);
        put_choices(out, word_at(command->usage));
        buf_cstr(out, "'\n");
    }
}

static void put_fish_words(Buf *out, const CommandTable *table)
{
    buf_cstr(
        out, "# fish completion of stentor " STENTOR_VERSION ": stentor completion fish\n"
             "function __stentor_is # COMMAND: the words before the cursor begin with it, and no "
             "longer command fits\n"
             "    set -l words (commandline -opc)\n"
             "    set -e words[1]\n"
             "    while string match -q -- '--*' $words[1]\n"
             "        if not string match -q -- '*=*' $words[1]; and not contains -- $words[1]");
    put_settings(out, table, true);
    buf_cstr(
        out, "\n            set -e words[1]\n"
             "        end\n"
             "        set -e words[1]\n"
             "    end\n"
             "    set -l wanted (string split -n ' ' -- $argv[1])\n"
             "    set -l count (count $wanted)\n"
             "    if test $count = 0\n"
             "        test (count $words) = 0\n"
             "        return\n"
             "    end\n"
             "    test \"$words[1..$count]\" = \"$argv[1]\"\n"
             "end\n"
             "complete -c stentor -n '__stentor_is \"\"' -f -a help -d 'list the commands, or tell "
             "one'\n"
             "complete -c stentor -n '__stentor_is \"\"' -l config -r\n");
}

static void put_fish_settings(Buf *out, const CommandTable *table)
{
    for (size_t i = 0; i < table->setting_count; i++) {
        buf_cstr(out, "complete -c stentor -n '__stentor_is \"\"' -l ");
        Buf name;
        buf_init(&name, 128);
        put_setting(&name, &table->settings[i]);
        buf_printf(
            out, "%s%s\n", buf_c(&name) + 2, table->settings[i].type == OPTION_BOOL ? "" : " -r");
        buf_done(&name);
    }
}

static void put_fish_command(Buf *out, const CommandTable *table, int i)
{
    const Command *command = &table->rows[i];
    const char *second = second_word(command);
    if (begins_group(table, i)) {
        buf_printf(
            out,
            "complete -c stentor -n '__stentor_is \"\"; or __stentor_is help' -f -a '" STR_FMT "'",
            STR_ARG(first_word(command)));
        buf_cstr(out, second == NULL ? " -d '" : "\n");
        if (second == NULL) {
            put_about(out, command);
            buf_cstr(out, "'\n");
        }
    }
    if (second != NULL) {
        buf_printf(
            out, "complete -c stentor -n '__stentor_is \"" STR_FMT "\"' -f -a %s -d '",
            STR_ARG(first_word(command)), second);
        put_about(out, command);
        buf_cstr(out, "'\n");
    }
    put_fish_flags(out, command);
}

static void put_fish(Buf *out, const CommandTable *table)
{
    put_fish_words(out, table);
    put_fish_settings(out, table);
    for (int i = 0; i < table->count; i++) {
        put_fish_command(out, table, i);
    }
}

int cmd_completion(Cli *cli)
{
    static const struct {
        const char *shell;
        void (*put)(Buf *out, const CommandTable *table);
    } shells[] = {{"bash", put_bash}, {"zsh", put_zsh}, {"fish", put_fish}};
    const char *wanted = args_word(&cli->args, 0);
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        if (strcmp(wanted, shells[i].shell) == 0) {
            Buf out;
            buf_init(&out, SCRIPT_MAX);
            shells[i].put(&out, cli->table);
            fputs(buf_c(&out), stdout);
            buf_done(&out);
            return EXIT_DONE;
        }
    }
    return cli_fail_as(
        cli, EXIT_USAGE, "no completion for '%s': expected bash, zsh or fish", wanted);
}
