/* manual_complete.c - completions for bash, zsh and fish; see manual.h. */
#include <string.h>

#include "manual.h"

static void put_verb_names(FILE *to, const cli_verb *verbs) {
    for (; verbs && verbs->name; verbs++) fprintf(to, "%s ", verbs->name);
}

static int takes_value(const cli_option *option) { return option->type != CLI_FLAG; }

/* ------------------------------------------------------------------------------------------ bash */

/* The pattern "VERB --name" or "VERB --name | VERB -x". */
static void put_pattern(FILE *to, const manual_page *page, const cli_option *option) {
    fprintf(to, "'%s --%s'", page->verb, option->name);
    if (option->letter) fprintf(to, " | '%s -%c'", page->verb, option->letter);
}

void manual_bash(FILE *to, const manual *m) {
    fputs("# bash completion for bjepa, written by `bjepa manual`.\n"
          "_bjepa() {\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
          "    local verb='' verbs='' options='' words='' i\n"
          "    COMPREPLY=()\n"
          "    for ((i = 1; i <= COMP_CWORD; i++)); do\n"
          "        case $verb in\n",
          to);
    for (int i = 0; i < m->count; i++) {
        const manual_page *p = &m->page[i];
        fprintf(to, "        '%s') verbs='", p->verb);
        put_verb_names(to, p->verbs);
        fputs("' options='", to);
        for (int k = 0; k < p->count; k++) {
            fprintf(to, "--%s ", p->options[k].option.name);
            if (p->options[k].option.letter) fprintf(to, "-%c ", p->options[k].option.letter);
        }
        fputs("' ;;\n", to);
    }
    fputs("        esac\n"
          "        [ \"$i\" -lt \"$COMP_CWORD\" ] || break\n"
          "        case \" $verbs\" in *\" ${COMP_WORDS[i]} \"*) ;; *) break ;; esac\n"
          "        verb=\"${verb:+$verb }${COMP_WORDS[i]}\"\n"
          "    done\n"
          "    case \"$verb $prev\" in\n",
          to);
    for (int i = 0; i < m->count; i++)
        for (int k = 0; k < m->page[i].count; k++) {
            const cli_option *o = &m->page[i].options[k].option;
            if (!takes_value(o)) continue;
            fputs("    ", to);
            put_pattern(to, &m->page[i], o);
            if (o->type == CLI_CHOICE) {
                fputs(") words='", to);
                manual_choices(to, o);
                fputs("' ;;\n", to);
            } else fputs(") compopt -o default 2>/dev/null; return ;;\n", to);
        }
    fputs("    *)\n"
          "        words=$verbs\n"
          "        [ \"${cur:0:1}\" != - ] || words=$options\n"
          "        ;;\n"
          "    esac\n"
          "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
          "    [ ${#COMPREPLY[@]} -gt 0 ] || compopt -o default 2>/dev/null\n"
          "}\n"
          "complete -F _bjepa bjepa\n",
          to);
}

/* ------------------------------------------------------------------------------------------- zsh */

/* Writes a text inside single quotes; brackets and colons separate parts of a specification. */
static void put_quoted(FILE *to, const char *text, const char *special) {
    for (; *text; text++) {
        if (*text == '\'') fputs("'\\''", to);
        else {
            if (strchr(special, *text)) fputc('\\', to);
            fputc(*text, to);
        }
    }
}

static void put_zsh_option(FILE *to, const cli_option *o) {
    const char *many = o->type == CLI_LIST ? "*" : "";
    fputs("            ", to);
    if (o->letter && !*many) fprintf(to, "'(-%c --%s)'{-%c,--%s}'[", o->letter, o->name, o->letter, o->name);
    else if (o->letter) fprintf(to, "'*'{-%c,--%s}'[", o->letter, o->name);
    else fprintf(to, "'%s--%s[", many, o->name);
    put_quoted(to, o->help, "[]:\\");
    fputc(']', to);
    if (takes_value(o)) {
        fputc(':', to);
        put_quoted(to, o->type == CLI_CHOICE ? o->name : o->arg, ":\\");
        fputc(':', to);
        if (o->type == CLI_CHOICE) {
            fputc('(', to);
            manual_choices(to, o);
            fputc(')', to);
        } else if (o->type == CLI_TEXT || o->type == CLI_LIST) fputs("_files", to);
    }
    fputs("' \\\n", to);
}

void manual_zsh(FILE *to, const manual *m) {
    fputs("#compdef bjepa\n# zsh completion for bjepa, written by `bjepa manual`.\n"
          "_bjepa() {\n"
          "    local verb='' verbs i\n"
          "    integer i=2\n"
          "    while (( i <= CURRENT )); do\n"
          "        verbs=''\n"
          "        case $verb in\n",
          to);
    for (int i = 0; i < m->count; i++)
        if (m->page[i].verbs) {
            fprintf(to, "        '%s') verbs='", m->page[i].verb);
            put_verb_names(to, m->page[i].verbs);
            fputs("' ;;\n", to);
        }
    fputs("        esac\n"
          "        (( i < CURRENT )) || break\n"
          "        [[ \" $verbs\" == *\" ${words[i]} \"* ]] || break\n"
          "        verb=\"${verb:+$verb }${words[i]}\"\n"
          "        (( i++ ))\n"
          "    done\n"
          "    [[ -z $verbs ]] || compadd -- ${=verbs}\n"
          "    case $verb in\n",
          to);
    for (int i = 0; i < m->count; i++) {
        fprintf(to, "    '%s')\n        _arguments -S \\\n", m->page[i].verb);
        for (int k = 0; k < m->page[i].count; k++) put_zsh_option(to, &m->page[i].options[k].option);
        fputs("            '*:file:_files'\n        ;;\n", to);
    }
    fputs("    esac\n}\n_bjepa \"$@\"\n", to);
}

/* ------------------------------------------------------------------------------------------ fish */

void manual_fish(FILE *to, const manual *m) {
    fputs("# fish completion for bjepa, written by `bjepa manual`.\n"
          "function __bjepa_verb\n"
          "    set -l verb ''\n"
          "    for word in (commandline -opc)[2..-1]\n"
          "        switch \"$verb\"\n",
          to);
    for (int i = 0; i < m->count; i++)
        if (m->page[i].verbs) {
            fprintf(to, "            case '%s'\n                set verbs ", m->page[i].verb);
            put_verb_names(to, m->page[i].verbs);
            fputc('\n', to);
        }
    fputs("            case '*'\n                set verbs\n"
          "        end\n"
          "        contains -- $word $verbs; or break\n"
          "        set verb (string trim \"$verb $word\")\n"
          "    end\n"
          "    test \"$verb\" = \"$argv[1]\"\n"
          "end\n",
          to);
    for (int i = 0; i < m->count; i++) {
        const manual_page *p = &m->page[i];
        for (const cli_verb *v = p->verbs; v && v->name; v++) {
            fprintf(to, "complete -c bjepa -n '__bjepa_verb \"%s\"' -a %s -d '", p->verb, v->name);
            put_quoted(to, v->summary, "");
            fputs("'\n", to);
        }
        for (int k = 0; k < p->count; k++) {
            const cli_option *o = &p->options[k].option;
            fprintf(to, "complete -c bjepa -n '__bjepa_verb \"%s\"' -l %s", p->verb, o->name);
            if (o->letter) fprintf(to, " -s %c", o->letter);
            if (takes_value(o)) fputs(" -r", to);
            if (o->type == CLI_CHOICE) {
                fputs(" -f -a '", to);
                manual_choices(to, o);
                fputc('\'', to);
            }
            fputs(" -d '", to);
            put_quoted(to, o->help, "");
            fputs("'\n", to);
        }
    }
}
