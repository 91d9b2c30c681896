/* The table of options, and getopt_long driven by it. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* getopt_long */
#endif
#include "base/parse.h"
#include "cli/options.h"

#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define SIZE_EXPECTED "a size in bytes above 0, such as 1000000, 512M or 2Gi"
#define TYPE_WORD(ID, name, numpy, bytes, kind, value) " " #name
#define TYPE_WORDS "one of" ALLFOLD_TYPES(TYPE_WORD)

static bool set_help(struct settings *settings, const char *text)
{
    (void)text;
    return settings->help = true;
}

static bool set_json(struct settings *settings, const char *text)
{
    (void)text;
    return settings->json = true;
}

static bool set_quiet(struct settings *settings, const char *text)
{
    (void)text;
    return settings->quiet = true;
}

static bool set_verbose(struct settings *settings, const char *text)
{
    (void)text;
    return settings->verbose = true;
}

/* The place of text in a list of words, or -1. */
static int choice(const char *text, const char *const *words, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(text, words[i]) == 0)
            return i;
    return -1;
}

static bool set_backend(struct settings *settings, const char *text)
{
    static const char *const words[] = {
        [ALLFOLD_BACKEND_AUTO] = "auto", [ALLFOLD_BACKEND_CUDA] = "cuda", [ALLFOLD_BACKEND_CPU] = "cpu"};
    const int found = choice(text, words, 3);
    settings->context.backend = (allfold_backend)found;
    return found >= 0;
}

static bool set_nan(struct settings *settings, const char *text)
{
    static const char *const words[] = {
        [ALLFOLD_NAN_PROPAGATE] = "propagate", [ALLFOLD_NAN_OMIT] = "omit", [ALLFOLD_NAN_ERROR] = "error"};
    const int found = choice(text, words, 3);
    settings->nan = (allfold_nan)found;
    return found >= 0;
}

static bool set_level(struct settings *settings, const char *text)
{
    static const char *const words[] = {[ALLFOLD_LEVEL_FAST] = "fast", [ALLFOLD_LEVEL_EXACT] = "exact"};
    const int found = choice(text, words, 2);
    settings->context.level = (allfold_level)found;
    return found >= 0;
}

static bool set_threads(struct settings *settings, const char *text)
{
    uint64_t threads;
    if (!parse_count(text, &threads) || threads < 1 || threads > 4096)
        return false;
    settings->context.threads = (int)threads;
    return true;
}

static bool set_staging(struct settings *settings, const char *text)
{
    return parse_size(text, &settings->context.staging_bytes) && settings->context.staging_bytes > 0;
}

static bool set_device_memory(struct settings *settings, const char *text)
{
    return parse_size(text, &settings->context.device_memory) && settings->context.device_memory > 0;
}

/* A number of seconds, 0 included. */
static bool parse_seconds(const char *text, double *seconds)
{
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= 0 && value <= 1e9))
        return false;
    *seconds = value;
    return true;
}

static bool set_timeout(struct settings *settings, const char *text)
{
    return parse_seconds(text, &settings->timeout) && (settings->timeout == 0 || settings->timeout >= 1);
}

static bool set_checkpoint(struct settings *settings, const char *text)
{
    settings->checkpoint = text;
    return text[0] != '\0' && text[strlen(text) - 1] != '/';
}

static bool set_checkpoint_every(struct settings *settings, const char *text)
{
    return parse_seconds(text, &settings->checkpoint_every);
}

static bool set_dtype(struct settings *settings, const char *text)
{
    return settings->hints.has_type = type_by_name(text, &settings->hints.type);
}

static bool set_offset(struct settings *settings, const char *text)
{
    return settings->hints.has_offset = parse_size(text, &settings->hints.offset);
}

static bool set_count(struct settings *settings, const char *text)
{
    return settings->hints.has_count = parse_count(text, &settings->hints.count);
}

static bool set_counts(struct settings *settings, const char *text)
{
    settings->ladder.counts = text; /* the ladder itself takes it apart */
    return text[0] != '\0';
}

static bool set_columns(struct settings *settings, const char *text)
{
    return parse_count(text, &settings->ladder.columns) && settings->ladder.columns > 0;
}

static bool set_rung(struct settings *settings, const char *text)
{
    settings->ladder.rung = text;
    return text[0] != '\0';
}

static bool set_type(struct settings *settings, const char *text)
{
    static const char *const words[] = {"int32", "f32", "f64", "all"};
    settings->ladder.type = text;
    return choice(text, words, 4) >= 0;
}

static bool set_fold(struct settings *settings, const char *text)
{
    static const char *const words[] = {"sum", "max", "all"};
    settings->ladder.fold = text;
    return choice(text, words, 3) >= 0;
}

static bool set_block(struct settings *settings, const char *text)
{
    static const char *const words[] = {"64", "128", "256", "512", "1024", "all"};
    const int found = choice(text, words, 6);
    if (found >= 0)
        settings->ladder.block = found == 5 ? -1 : 64 << found;
    return found >= 0;
}

static bool set_list(struct settings *settings, const char *text)
{
    (void)text;
    return settings->ladder.list = true;
}

static bool set_check(struct settings *settings, const char *text)
{
    (void)text;
    return settings->check = true;
}

static bool set_bench_counts(struct settings *settings, const char *text)
{
    settings->bench.counts = text; /* bench.c takes lists apart */
    return text[0] != '\0';
}

static bool set_bench_types(struct settings *settings, const char *text)
{
    settings->bench.types = text;
    return text[0] != '\0';
}

static bool set_bench_folds(struct settings *settings, const char *text)
{
    settings->bench.folds = text;
    return text[0] != '\0';
}

static bool set_ranks(struct settings *settings, const char *text)
{
    settings->bench.ranks = text;
    return text[0] != '\0';
}

static bool set_data(struct settings *settings, const char *text)
{
    static const char *const words[] = {"device", "host"};
    const int found = choice(text, words, 2);
    settings->bench.in_host = found == 1;
    return found >= 0;
}

static bool set_warm(struct settings *settings, const char *text)
{
    (void)text;
    return settings->bench.warm = true;
}

/* A decimal number within bounds. */
static bool parse_number(const char *text, double least, double most, double *number)
{
    char *end;
    const double parsed = strtod(text, &end);
    if (end == text || *end != '\0' || !(parsed >= least && parsed <= most))
        return false;
    *number = parsed;
    return true;
}

static bool set_seconds(struct settings *settings, const char *text)
{
    return parse_number(text, 0.001, 3600.0, &settings->bench.seconds);
}

static bool set_baseline(struct settings *settings, const char *text)
{
    settings->bench.baseline = text;
    return text[0] != '\0';
}

static bool set_tolerance(struct settings *settings, const char *text)
{
    double percent;
    if (!parse_number(text, 0.001, 10000.0, &percent))
        return false;
    settings->bench.tolerance = percent / 100.0;
    return true;
}

static bool set_slow(struct settings *settings, const char *text)
{
    double percent;
    if (!parse_number(text, 1.0, 100.0, &percent))
        return false;
    settings->bench.slow = percent / 100.0;
    return true;
}

static bool set_total(struct settings *settings, const char *text)
{
    (void)text;
    return settings->bench.total = true;
}

static bool set_survey(struct settings *settings, const char *text)
{
    (void)text;
    return settings->bench.survey = true;
}

static bool set_bench_list(struct settings *settings, const char *text)
{
    (void)text;
    return settings->bench.list = true;
}

static bool set_partial(struct settings *settings, const char *text)
{
    settings->partial = text;
    return text[0] != '\0';
}

static bool set_output(struct settings *settings, const char *text)
{
    settings->output = text;
    return text[0] != '\0';
}

static bool set_output_type(struct settings *settings, const char *text)
{
    settings->has_output_type = type_by_name(text, &settings->output_type) && type_kind(settings->output_type) == 'f';
    return settings->has_output_type;
}

static const struct row {
    const char *name;
    char letter;          /* 0 where there is none */
    const char *argument; /* NULL where it takes none */
    unsigned takes;       /* which commands take it */
    bool (*set)(struct settings *settings, const char *text); /* false: the argument is not as expected */
    const char *expected;
    const char *text;
} rows[] = {
    {"dtype", 0, "TYPE", TAKES_TYPE, set_dtype, TYPE_WORDS,
     "element type of a raw file, or of generated elements"},
    {"offset", 0, "SIZE", TAKES_RAW, set_offset, "a size in bytes, such as 128 or 4Ki",
     "raw file: bytes before the first element (default: 0)"},
    {"count", 0, "COUNT", TAKES_RAW, set_count, "a count, such as 1000, 1e9 or 2^30",
     "raw file: elements to read (default: the rest of the file)"},
    {"count", 0, "COUNT[,COUNT]...", TAKES_LADDER, set_counts, "counts, such as 2^24 or 1000,2^20 or 0-70 or 0-4200:7",
     "how many elements: counts, ranges A-B, or A-B:STEP (default: 2^24,2^28)"},
    {"type", 0, "int32|f32|f64|all", TAKES_LADDER, set_type, "int32, f32, f64 or all", "their type (default: f32)"},
    {"fold", 0, "sum|max|all", TAKES_LADDER, set_fold, "sum, max or all", "what is computed of them (default: sum)"},
    {"block", 0, "N|all", TAKES_LADDER, set_block, "64, 128, 256, 512, 1024 or all",
     "threads of a block: 64, 128, 256, 512 or 1024 (default: 256)"},
    {"rung", 0, "NAME", TAKES_LADDER, set_rung, "a name of --list", "run this rung only"},
    {"columns", 0, "COUNT", TAKES_LADDER, set_columns, "a count above 0, such as 16384",
     "coalescing: columns of the matrix (default: as many as rows)"},
    {"check", 0, NULL, TAKES_LADDER, set_check, NULL,
     "compare with the oracle, time nothing (default: all types and folds, many counts)"},
    {"check", 0, NULL, TAKES_BINDING, set_check, NULL,
     "fail where ranks share a device or cores, or have cores far from their GPU"},
    {"list", 0, NULL, TAKES_LADDER, set_list, NULL, "print the rungs and their ideas"},
    {"count", 0, "COUNT[,COUNT]...|all", TAKES_BENCH, set_bench_counts, "counts above 0, such as 2^20 or 1000,2^28, or all",
     "how many elements a rank has (default: a short set; all: 2^10 to 2^31)"},
    {"total", 0, NULL, TAKES_BENCH, set_total, NULL, "counts are of all ranks together, and divided among them"},
    {"type", 0, "TYPE[,TYPE]...|all", TAKES_BENCH, set_bench_types, "types, such as f32 or f32,bf16, or all",
     "their types: f32, f64, bf16, f16, int32 (default: f32)"},
    {"fold", 0, "FOLD[,FOLD]...|all", TAKES_BENCH, set_bench_folds, "folds of --list, such as sum or sum,softmax, or all",
     "what is computed of them (default: sum,max,sumexp,softmax)"},
    {"ranks", 0, "N[,N]...|all", TAKES_BENCH, set_ranks, "numbers of ranks, such as 1 or 1,2,4, or all",
     "measure on the first N ranks, one N after the other (all: 1, 2, 4, ...)"},
    {"data", 0, "device|host", TAKES_BENCH, set_data, "device or host",
     "where the data is: where the backend computes (default), or in pinned host memory"},
    {"warm", 0, NULL, TAKES_BENCH, set_warm, NULL, "leave the caches as they are (default: clear them before each run)"},
    {"seconds", 0, "S", TAKES_BENCH, set_seconds, "a number of seconds from 0.001 to 3600",
     "time for one count, type and fold, about (default: 0.3)"},
    {"survey", 0, NULL, TAKES_BENCH, set_survey, NULL, "measure each rank's device and links only, no folds"},
    {"slow", 0, "PERCENT", TAKES_BENCH, set_slow, "a percentage from 1 to 100",
     "fail where a device or link is below this part of the ranks' median"},
    {"baseline", 0, "FILE", TAKES_BENCH, set_baseline, "the name of a file",
     "compare with what --json printed before; fail where allfold became slower"},
    {"tolerance", 0, "PERCENT", TAKES_BENCH, set_tolerance, "a percentage from 0.001 to 10000",
     "slower than the baseline by more than this is a failure (default: 10)"},
    {"list", 0, NULL, TAKES_BENCH, set_bench_list, NULL, "print what can be measured, and who is measured"},
    {"nan", 0, "propagate|omit|error", TAKES_NAN, set_nan, "propagate, omit or error",
     "what NaN does: it is the result (default), it is left out, it is refused"},
    {"sum", 0, "exact|fast", TAKES_LEVEL, set_level, "exact or fast",
     "how sums are computed: exactly, with the same bits everywhere (default), or fast"},
    {"partial", 0, "FILE", TAKES_PARTIAL, set_partial, "the name of a file",
     "keep the partial of the whole array there, to be merged with others'"},
    {"output", 'o', "FILE", TAKES_OUTPUT, set_output, "the name of a file",
     "where elements go: .npy if it ends so, else raw; replaced on success only"},
    {"output-type", 0, "TYPE", TAKES_OUTPUT_TYPE, set_output_type, "f16, bf16, f32 or f64",
     "element type of the result: f16, bf16, f32 or f64 (default: the input's)"},
    {"checkpoint", 0, "FILE", TAKES_CHECKPOINT, set_checkpoint, "the name of a file",
     "keep in FILE.RANK how far the fold has come; go on from there; removed on success"},
    {"checkpoint-every", 0, "SECONDS", TAKES_CHECKPOINT, set_checkpoint_every, "seconds, such as 60 or 0",
     "time between two checkpoints (default: 30; 0: after each shard)"},
    {"output-type", 0, "TYPE", TAKES_RESULT_TYPE, set_output_type, "f16, bf16, f32 or f64",
     "round the value to f16, bf16, f32 or f64 (default: f64, and integers as they are)"},
    {"backend", 0, "auto|cuda|cpu", TAKES_COMMON, set_backend, "auto, cuda or cpu",
     "what computes (default: auto, which is cuda where a GPU is visible)"},
    {"device-memory", 0, "SIZE", TAKES_DEVICE, set_device_memory, SIZE_EXPECTED,
     "device memory that a rank may use (default: 3/4 of what is free)"},
    {"staging", 0, "SIZE", TAKES_COMMON, set_staging, SIZE_EXPECTED,
     "size of one of the buffers that elements pass through"},
    {"threads", 0, "N", TAKES_COMMON, set_threads, "a number from 1 to 4096",
     "CPU threads of a rank (default: its share of the cores)"},
    {"timeout", 0, "SECONDS", TAKES_COMMON, set_timeout, "seconds, at least 1, or 0 for no watchdog",
     "end the job when a rank is not heard from for so long (default: 300; 0: never)"},
    {"json", 0, NULL, TAKES_COMMON, set_json, NULL, "print the report as one JSON object"},
    {"quiet", 'q', NULL, TAKES_COMMON, set_quiet, NULL, "print nothing but the value"},
    {"verbose", 'v', NULL, TAKES_COMMON, set_verbose, NULL, "say on standard error which rank does what, and where"},
    {"help", 'h', NULL, TAKES_COMMON, set_help, NULL, "print this help"},
};
enum { ROWS = sizeof rows / sizeof *rows, LONG_BASE = UCHAR_MAX + 1 };

/* Levenshtein's distance, for names of a few letters. */
static size_t distance(const char *a, const char *b)
{
    size_t row[33];
    const size_t length = strlen(b);
    if (length >= sizeof row / sizeof *row)
        return SIZE_MAX;
    for (size_t j = 0; j <= length; j++)
        row[j] = j;
    for (size_t i = 0; a[i] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < length; j++) {
            const size_t replaced = diagonal + (a[i] != b[j]);
            const size_t kept = row[j] < row[j + 1] ? row[j] : row[j + 1];
            diagonal = row[j + 1];
            row[j + 1] = replaced < kept + 1 ? replaced : kept + 1;
        }
    }
    return row[length];
}

struct suggestion suggest(const char *found, const char *const *names, size_t count, const char *prefix)
{
    struct suggestion suggestion = {""};
    size_t best = strlen(found) / 3 + 2; /* farther than that is another word */
    for (size_t i = 0; i < count; i++) {
        const size_t d = distance(found, names[i]);
        if (d < best) {
            best = d;
            snprintf(suggestion.text, sizeof suggestion.text, " (did you mean %s%s?)", prefix, names[i]);
        }
    }
    return suggestion;
}

/* An option that means different things to different commands has two rows: the first one of its name, and the one that
   the command takes, if it takes any. */
static int first_row(const char *name)
{
    int i = 0;
    while (strcmp(rows[i].name, name) != 0)
        i++;
    return i;
}
static const struct row *row_for(const struct command *command, const struct row *row)
{
    for (int i = 0; i < ROWS; i++)
        if (strcmp(rows[i].name, row->name) == 0 && (rows[i].takes & command_takes(command)) != 0)
            return &rows[i];
    return row;
}

/* Tells getopt of every option, also of those that this command does not take: abbreviations then mean the same
   everywhere, and the message can say which commands take one. */
static void describe(struct option longs[ROWS + 1], char letters[2 * ROWS + 2])
{
    *letters++ = ':'; /* a missing argument is told from an unknown option */
    for (int i = 0; i < ROWS; i++) {
        longs[i] = (struct option){rows[i].name, rows[i].argument != NULL, NULL, LONG_BASE + first_row(rows[i].name)};
        if (rows[i].letter != 0) {
            *letters++ = rows[i].letter;
            if (rows[i].argument != NULL)
                *letters++ = ':';
        }
    }
    longs[ROWS] = (struct option){NULL, 0, NULL, 0};
    *letters = '\0';
}

static const struct row *row_of(int code)
{
    if (code >= LONG_BASE && code < LONG_BASE + ROWS)
        return &rows[code - LONG_BASE];
    for (int i = 0; i < ROWS; i++)
        if (code != 0 && rows[i].letter == code)
            return &rows[i];
    return NULL;
}

static allfold_status refuse_unknown(const struct command *command, const char *word, struct error *error)
{
    const char *names[ROWS];
    char name[40], similar[160] = "";
    const size_t length = strcspn(word, "=");
    size_t count = 0;
    int like = 0;
    if (optopt != 0) /* a letter; word may then be the argument before it */
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: unknown option -%c: see allfold %s --help", command->name,
                         optopt, command->name);
    snprintf(name, sizeof name, "%.*s", (int)length - 2, word + 2);
    for (int i = 0; i < ROWS; i++) {
        if (strncmp(rows[i].name, name, length - 2) == 0 && first_row(rows[i].name) == i)
            snprintf(similar + strlen(similar), sizeof similar - strlen(similar), "%s --%s", like++ > 0 ? "," : "",
                     rows[i].name);
        if ((rows[i].takes & command_takes(command)) != 0)
            names[count++] = rows[i].name;
    }
    if (like > 1)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: --%s could be%s: say which", command->name, name, similar);
    return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: unknown option --%s%s: see allfold %s --help", command->name,
                     name, suggest(name, names, count, "--").text, command->name);
}

static allfold_status refuse_foreign(const struct command *command, const struct row *row, struct error *error)
{
    char takers[200] = "";
    for (size_t i = 0; i < command_count; i++)
        if ((command_takes(&commands[i]) & row->takes) != 0)
            snprintf(takers + strlen(takers), sizeof takers - strlen(takers), "%s %s", takers[0] != '\0' ? "," : "",
                     commands[i].name);
    return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s takes no --%s; these commands do:%s", command->name, row->name,
                     takers);
}

static allfold_status take_option(const struct command *command, int code, char **argv, struct settings *settings,
                                  struct error *error)
{
    const bool refused = code == '?' || code == ':';
    const struct row *row = row_of(refused ? optopt : code);
    if (row == NULL)
        return refuse_unknown(command, argv[optind - 1], error);
    row = row_for(command, row);
    if ((row->takes & command_takes(command)) == 0)
        return refuse_foreign(command, row, error);
    if (code == '?')
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: --%s takes no argument, found '%.100s'", command->name,
                         row->name, argv[optind - 1]);
    if (code == ':')
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: --%s: expected %s, found nothing", command->name, row->name,
                         row->expected);
    if (!row->set(settings, optarg))
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: --%s: expected %s, found '%.100s'", command->name, row->name,
                         row->expected, optarg);
    return ALLFOLD_OK;
}

static allfold_status take_operands(const struct command *command, int count, char **operands,
                                    struct settings *settings, struct error *error)
{
    const int expected = command->operand != NULL, needed = expected && command->operand[0] != '[';
    if (count < needed)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: expected %s, found nothing: see allfold %s --help", command->name,
                  command->operand, command->name);
    else if (count > expected && !(expected && strstr(command->operand, "...") != NULL))
        error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: expected %s%s, found '%.100s' too", command->name,
                  expected ? "one " : "options only", expected ? command->operand : "", operands[expected]);
    else if ((command_takes(command) & TAKES_OUTPUT) != 0 && settings->output == NULL)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: expected -o FILE, where its elements go", command->name);
    else if (count > 0)
        settings->operand = operands[0];
    settings->operands = operands;
    settings->operand_count = count;
    return error->status;
}

allfold_status options_parse(const struct command *command, int argc, char **argv, struct settings *settings,
                             struct error *error)
{
    struct option longs[ROWS + 1];
    char letters[2 * ROWS + 2];
    struct settings parsed = {.command = command, .timeout = 300, .checkpoint_every = 30};
    int code;
    describe(longs, letters);
    opterr = 0;
    optind = 1;
    while ((code = getopt_long(argc, argv, letters, longs, NULL)) != -1)
        if (take_option(command, code, argv, &parsed, error) != ALLFOLD_OK)
            return error->status;
    if (!parsed.help && take_operands(command, argc - optind, argv + optind, &parsed, error) != ALLFOLD_OK)
        return error->status;
    *settings = parsed;
    return ALLFOLD_OK;
}

void options_print(FILE *file, const struct command *command)
{
    for (int i = 0; i < ROWS; i++) {
        if ((rows[i].takes & command_takes(command)) == 0)
            continue;
        char name[64];
        if (rows[i].letter != 0)
            snprintf(name, sizeof name, "-%c, --%s", rows[i].letter, rows[i].name);
        else
            snprintf(name, sizeof name, "    --%s", rows[i].name);
        if (rows[i].argument != NULL)
            snprintf(name + strlen(name), sizeof name - strlen(name), "=%s", rows[i].argument);
        fprintf(file, "  %-32s  %s\n", name, rows[i].text);
    }
}

void options_print_words(FILE *file)
{
    fputs("TYPE is " TYPE_WORDS ".\n"
          "COUNT is 1000, 1e9, 2^30, 64k (k or K, M, G, T, P: thousands) or 64Mi (Ki to Ei: powers of 1024).\n"
          "SIZE is the same in bytes, with or without a B: 512M, 2GiB.\n", file);
}
