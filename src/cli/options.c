/* Parses options: see options.h. */
#include "cli/options.h"

#include "base/parse.h"
#include "cli/suggest.h"

#include <string.h>

#define TYPE_WORD(ID, name, numpy, bytes, kind, value) " " #name
#define TYPE_WORDS "one of" ALLFOLD_TYPES(TYPE_WORD)
#define FLOAT_TYPE_WORDS "f16, bf16, f32 or f64"

enum { OPTIONS_MAX = 48 };

/* A command's rows; those of every command if there is none. */
struct command_rows {
    int count;
    const struct option *row[OPTIONS_MAX];
};

static struct command_rows rows_of(const struct command_table *table, const struct command *command)
{
    const unsigned refused = command != NULL && command->refused != NULL ? command->refused(command) : 0;
    const unsigned groups = command != NULL ? command->options & ~refused : OPTIONS_COMMON;
    struct command_rows rows = {0};
    bool taken = false;
    for (const struct option *row = table->options; row->name != NULL || row->group != 0; row++)
        if (row->name == NULL)
            taken = (row->group & groups) != 0;
        else if (taken && rows.count < OPTIONS_MAX)
            rows.row[rows.count++] = row;
    return rows;
}

static bool has_argument(const struct option *row) { return row->kind != OPTION_FLAG; }

/* ---- arguments */

/* The index of text among words separated by bars, or -1. */
static int choice(const char *words, const char *text)
{
    const size_t length = strlen(text);
    for (int i = 0;; i++) {
        const size_t word = strcspn(words, "|");
        if (word == length && memcmp(words, text, length) == 0)
            return i;
        if (words[word] == '\0')
            return -1;
        words += word + 1;
    }
}

/* "auto|cuda|cpu" as "auto, cuda or cpu". */
static void list_words(const char *words, char *text, size_t bytes)
{
    const char *const last = strrchr(words, '|');
    size_t length = 0;
    for (; *words != '\0' && length + 5 < bytes; words++)
        if (*words == '|')
            length += (size_t)snprintf(text + length, bytes - length, words == last ? " or " : ", ");
        else
            text[length++] = *words;
    text[length] = '\0';
}

/* Describes the argument that the option expects. */
struct expected {
    char text[200];
};
static struct expected expected_of(const struct option *row)
{
    struct expected e = {""};
    const char *const above = row->least > 0 ? " above 0 and" : "";
    switch (row->kind) {
    case OPTION_CHOICE:
    case OPTION_WORD: list_words(row->argument, e.text, sizeof e.text); break;
    case OPTION_FILE: snprintf(e.text, sizeof e.text, "the name of a file"); break;
    case OPTION_TYPE: snprintf(e.text, sizeof e.text, "%s, or NumPy's name of it such as float32", TYPE_WORDS); break;
    case OPTION_FLOAT_TYPE: snprintf(e.text, sizeof e.text, "%s", FLOAT_TYPE_WORDS); break;
    case OPTION_COUNT: snprintf(e.text, sizeof e.text, "a count%s below 2^64, such as 1000, 1e9 or 2^30", above); break;
    case OPTION_SIZE: snprintf(e.text, sizeof e.text, "a size in bytes%s below 2^63, such as 4096, 512M or 2Gi", above); break;
    case OPTION_INTEGER:
    case OPTION_NUMBER: snprintf(e.text, sizeof e.text, "a number from %g to %g", row->least, row->most); break;
    case OPTION_NUMBER_OR_0: snprintf(e.text, sizeof e.text, "0, or a number from %g to %g", row->least, row->most); break;
    case OPTION_FLAG:
    case OPTION_TEXT: snprintf(e.text, sizeof e.text, "%s", row->argument); break;
    }
    return e;
}

static bool is_file_name(const char *text)
{
    return text[0] != '\0' && text[strlen(text) - 1] != '/' && strcmp(text, "-") != 0;
}

static bool take_number(const struct option *row, const char *text, double *place)
{
    double number;
    if (!parse_real(text, &number)
        || !((number >= row->least && number <= row->most) || (row->kind == OPTION_NUMBER_OR_0 && number == 0)))
        return false;
    *place = number;
    return true;
}

/* Parses text into the row's place; false if it is not as expected. */
static bool take_argument(const struct option *row, const char *text, struct settings *settings)
{
    void *const place = (char *)settings + row->place;
    uint64_t count;
    switch (row->kind) {
    case OPTION_FLAG: return *(bool *)place = true;
    case OPTION_CHOICE: return (*(int *)place = choice(row->argument, text)) >= 0;
    case OPTION_WORD: *(const char **)place = text; return choice(row->argument, text) >= 0;
    case OPTION_TEXT: *(const char **)place = text; return text[0] != '\0';
    case OPTION_FILE: *(const char **)place = text; return is_file_name(text);
    case OPTION_TYPE: return type_by_name(text, place);
    case OPTION_FLOAT_TYPE: return type_by_name(text, place) && type_kind(*(allfold_type *)place) == 'f';
    case OPTION_COUNT: return parse_count(text, place) && (double)*(uint64_t *)place >= row->least;
    case OPTION_SIZE: return parse_size(text, place) && (double)*(uint64_t *)place >= row->least && *(uint64_t *)place <= INT64_MAX;
    case OPTION_INTEGER:
        if (!parse_count(text, &count) || (double)count < row->least || (double)count > row->most)
            return false;
        *(int *)place = (int)count;
        return true;
    case OPTION_NUMBER:
    case OPTION_NUMBER_OR_0: return take_number(row, text, place);
    }
    return false;
}

/* ---- finding options */

struct option_parser {
    const struct command_table *table;
    const struct command *command;
    struct command_rows rows;
    bool given[OPTIONS_MAX];
    struct settings *settings;
    char **next, **end; /* the words that are left */
    struct error *error;
};

static const struct option *find(const struct command_rows *rows, const char *name)
{
    for (int i = 0; i < rows->count; i++)
        if (strcmp(rows->row[i]->name, name) == 0)
            return rows->row[i];
    return NULL;
}

/* An option of another command, or of none. */
static void refuse_unknown(const struct option_parser *p, const char *name)
{
    const char *names[OPTIONS_MAX];
    char takers[200] = "";
    for (size_t i = 0; i < p->table->count; i++) {
        const struct command *const other = &p->table->commands[i];
        const struct command_rows rows = rows_of(p->table, other);
        if (find(&rows, name) != NULL)
            snprintf(takers + strlen(takers), sizeof takers - strlen(takers), "%s %s", takers[0] != '\0' ? "," : "", other->name);
    }
    for (int i = 0; i < p->rows.count; i++)
        names[i] = p->rows.row[i]->name;
    if (takers[0] != '\0')
        error_set(p->error, ALLFOLD_BAD_ARGUMENT, "%s takes no --%s; these commands do:%s", p->command->name, name, takers);
    else
        error_set(p->error, ALLFOLD_BAD_ARGUMENT, "%s: unknown option --%.60s%s: see allfold %s --help", p->command->name, name,
                  suggest(name, names, (size_t)p->rows.count, "--").text, p->command->name);
}

/* The row of that name, or the only row whose name begins with it. NULL: refused. */
static const struct option *find_long(const struct option_parser *p, const char *name)
{
    const struct option *row = find(&p->rows, name);
    char similar[200] = "";
    int like = 0;
    for (int i = 0; i < p->rows.count && row == NULL; i++)
        if (strncmp(p->rows.row[i]->name, name, strlen(name)) == 0)
            snprintf(similar + strlen(similar), sizeof similar - strlen(similar), "%s --%s", like++ > 0 ? "," : "",
                     p->rows.row[i]->name);
    if (row != NULL)
        return row;
    if (like == 1)
        return find(&p->rows, similar + strlen(" --"));
    if (like > 1)
        error_set(p->error, ALLFOLD_BAD_ARGUMENT, "%s: --%s could be%s: say which", p->command->name, name, similar);
    else
        refuse_unknown(p, name);
    return NULL;
}

static const struct option *with_letter(const struct command_rows *rows, char letter)
{
    for (int i = 0; i < rows->count; i++)
        if (rows->row[i]->letter == letter)
            return rows->row[i];
    return NULL;
}

static const struct option *find_letter(const struct option_parser *p, char letter)
{
    const struct option *const row = with_letter(&p->rows, letter);
    if (row != NULL)
        return row;
    for (size_t i = 0; i < p->table->count; i++) {
        const struct command_rows rows = rows_of(p->table, &p->table->commands[i]);
        if (with_letter(&rows, letter) != NULL)
            refuse_unknown(p, with_letter(&rows, letter)->name);
    }
    error_set(p->error, ALLFOLD_BAD_ARGUMENT, "%s: unknown option -%c: see allfold %s --help", p->command->name, letter,
              p->command->name);
    return NULL;
}

/* ---- parsing */

/* text: NULL if the word itself holds no argument: then the argument is the next word. */
static void take_option(struct option_parser *p, const struct option *row, const char *text)
{
    const char *const command = p->command->name;
    if (!has_argument(row) && text != NULL)
        error_set(p->error, ALLFOLD_BAD_ARGUMENT, "%s: --%s takes no argument, found '%.100s'", command, row->name, text);
    else if (has_argument(row) && text == NULL && p->next == p->end)
        error_set(p->error, ALLFOLD_BAD_ARGUMENT, "%s: --%s: expected %s, found nothing", command, row->name,
                  expected_of(row).text);
    else {
        if (has_argument(row) && text == NULL)
            text = *p->next++;
        if (!take_argument(row, text, p->settings))
            error_set(p->error, ALLFOLD_BAD_ARGUMENT, "%s: --%s: expected %s, found '%.100s'%s", command, row->name,
                      expected_of(row).text, text, row->kind == OPTION_FILE && strcmp(text, "-") == 0
                      ? ": streams are not supported (./- is a file of that name)" : "");
    }
    for (int i = 0; i < p->rows.count; i++)
        p->given[i] |= p->rows.row[i] == row;
    if (row->given != 0)
        *(bool *)((char *)p->settings + row->given) = true;
}

static void take_long(struct option_parser *p, const char *word)
{
    char name[64];
    const char *const equals = strchr(word, '=');
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    const struct option *const row = find_long(p, name);
    if (row != NULL && equals != NULL && !has_argument(row) && strcmp(row->name, name) != 0)
        refuse_unknown(p, name); /* an abbreviated flag is not meant */
    else if (row != NULL)
        take_option(p, row, equals != NULL ? equals + 1 : NULL);
}

/* "-qo" FILE, "-oFILE" */
static void take_letters(struct option_parser *p, const char *letters)
{
    while (*letters != '\0' && p->error->status == ALLFOLD_OK) {
        const struct option *const row = find_letter(p, *letters++);
        if (row == NULL)
            return;
        const char *const argument = has_argument(row) && *letters != '\0' ? letters : NULL;
        take_option(p, row, argument);
        if (has_argument(row))
            return;
    }
}

static void check_given(const struct option_parser *p)
{
    for (int i = 0; i < p->rows.count; i++) {
        const struct option *const row = p->rows.row[i];
        for (int j = 0; j < p->rows.count && p->given[i] && row->needs != NULL; j++)
            if (strcmp(p->rows.row[j]->name, row->needs) == 0 && !p->given[j])
                error_set(p->error, ALLFOLD_BAD_ARGUMENT, "%s: --%s: expected --%s=%s beside it, without which it has no effect",
                          p->command->name, row->name, row->needs, p->rows.row[j]->argument);
        if (row->required && !p->given[i])
            error_set(p->error, ALLFOLD_BAD_ARGUMENT, row->letter != 0 ? "%s: expected -%c%s %s, found nothing: see allfold %s --help"
                                                                       : "%s: expected --%c%s=%s, found nothing: see allfold %s --help",
                      p->command->name, row->letter != 0 ? row->letter : row->name[0], row->letter != 0 ? "" : row->name + 1, row->argument,
                      p->command->name);
    }
}

static void check_operands(const struct option_parser *p, int count, char **operands)
{
    const char *const operand = p->command->operand, *const command = p->command->name;
    const int expected = operand == NULL ? 0 : strchr(operand, ' ') != NULL ? 2 : 1, needed = expected > 0 && operand[0] == '[' ? 0 : expected;
    if (count < needed)
        error_set(p->error, ALLFOLD_BAD_ARGUMENT, "%s: expected %s, found %s%.100s: see allfold %s --help", command, operand,
                  count == 0 ? "nothing" : "only ", count == 0 ? "" : operands[0], command);
    else if (count > expected && !(expected && strstr(operand, "...") != NULL))
        error_set(p->error, ALLFOLD_BAD_ARGUMENT, "%s: expected %s%s, found '%.100s' too", command,
                  expected == 1 ? "one " : expected == 0 ? "options only" : "", expected ? operand : "", operands[expected]);
    for (int i = 0; expected && i < count; i++)
        if (strcmp(operands[i], "-") == 0)
            error_set(p->error, ALLFOLD_BAD_ARGUMENT, "%s: expected %s, found '-': streams are not supported, since ranks read a "
                      "file at several places at once (./- is a file of that name)", command, operand);
}

allfold_status options_parse(const struct command_table *table, int argc, char **argv, struct settings *settings,
                             struct error *error)
{
    struct option_parser p = {.table = table, .command = settings->command, .rows = rows_of(table, settings->command),
                       .settings = settings, .next = argv + 1, .end = argv + argc, .error = error};
    char **const operands = argv + 1;
    int count = 0;
    bool options = true; /* until a word "--" */
    while (p.next < p.end && error->status == ALLFOLD_OK) {
        char *const word = *p.next++;
        if (!options || word[0] != '-' || word[1] == '\0')
            operands[count++] = word;
        else if (word[1] != '-')
            take_letters(&p, word + 1);
        else if (word[2] != '\0')
            take_long(&p, word + 2);
        else
            options = false;
    }
    settings->operand = count > 0 ? operands[0] : NULL;
    settings->operands = (const char *const *)operands;
    settings->operand_count = count;
    if (!settings->help && error->status == ALLFOLD_OK) {
        check_operands(&p, count, operands);
        check_given(&p);
    }
    return error->status;
}

/* ---- explaining */

static void print(FILE *file, const struct option *row)
{
    char name[80];
    if (row->letter != 0)
        snprintf(name, sizeof name, "-%c, --%s", row->letter, row->name);
    else
        snprintf(name, sizeof name, "    --%s", row->name);
    if (has_argument(row))
        snprintf(name + strlen(name), sizeof name - strlen(name), "=%s", row->argument);
    fprintf(file, "  %-32s  %s\n", name, row->text);
}

void options_print(FILE *file, const struct command_table *table, const struct command *command)
{
    const struct command_rows rows = rows_of(table, command);
    for (int i = 0; i < rows.count; i++)
        print(file, rows.row[i]);
}

const struct option *options_required(const struct command_table *table, const struct command *command)
{
    const struct command_rows rows = rows_of(table, command);
    for (int i = 0; i < rows.count; i++)
        if (rows.row[i]->required)
            return rows.row[i];
    return NULL;
}

void options_print_words(FILE *file)
{
    fputs("TYPE is " TYPE_WORDS ".\n"
          "COUNT is 1000, 1e9, 2^30, 64k (k or K, M, G, T, P: thousands) or 64Mi (Ki to Ei: powers of 1024).\n"
          "SIZE is the same in bytes, with or without a B: 512M, 2GiB.\n", file);
}
