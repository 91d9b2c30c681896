/* Lists the options of all commands: see option_rows.h, and options.h for what a row says. */
#include "cli/commands/option_rows.h"

#include <float.h>
#include <stddef.h>

#define PLACE(member) .place = offsetof(struct settings, member)
#define GIVEN(member) .given = offsetof(struct settings, member)

#define GROUP(name) {.group = OPTIONS_##name}

const struct option option_rows[] = {
    GROUP(TYPE),
    {"dtype", "TYPE", "element type of a raw file, or of generated elements (other files must agree)", OPTION_TYPE, PLACE(hints.type)},

    GROUP(RAW),
    {"offset", "SIZE", "leave out so much: bytes of a raw file, else elements; not of HDF5 in chunks", OPTION_SIZE, PLACE(hints.offset),
     GIVEN(hints.has_offset)},
    {"count", "COUNT", "elements to read, in the order of the file (default: all the rest)", OPTION_COUNT, PLACE(hints.count),
     GIVEN(hints.has_count)},
    {"shape", "N[,N]...", "the shape of a raw file, or of another row of elements, in C order; one N may be -1", OPTION_TEXT, PLACE(hints.shape)},

    GROUP(SLICE),
    {"slice", "DIM=A:B[,DIM=A:B]...", "of dimensions, by name or number, the indices from A to before B, as in Python", OPTION_TEXT, PLACE(hints.slice)},

    GROUP(MISSING),
    {"missing", "omit|keep|error", "missing values of a file: left out and counted (default), taken as numbers, refused", OPTION_CHOICE, PLACE(hints.missing)},

    GROUP(NAN),
    {"nan", "propagate|omit|error", "what NaN does: it is the result (default), it is left out, it is refused",
     OPTION_CHOICE, PLACE(nan)},

    GROUP(LEVEL),
    {"sum", "exact|fast", "how sums are computed: exactly, with the same bits everywhere (default), or fast",
     OPTION_CHOICE, PLACE(context.level)},

    GROUP(PARTIAL),
    {"partial", "FILE", "keep the partial of the whole array there, to be merged with others'", OPTION_FILE, PLACE(partial)},

    GROUP(MANY),
    {"total", NULL, "one value of all arrays that the INPUTs mean, one after the other", OPTION_FLAG, PLACE(total)},

    GROUP(RESULT_TYPE),
    {"output-type", "TYPE", "round the value to f16, bf16, f32 or f64 (default: f64, and integers as they are)",
     OPTION_FLOAT_TYPE, PLACE(output_type)},

    GROUP(AXIS),
    {"axis", "N[,N]...", "work along this axis (number or name; -1: the last), or several", OPTION_TEXT, PLACE(axis)},

    GROUP(ROWS),
    {"keepdims", NULL, "the axis stays in the result's shape, with length 1", OPTION_FLAG, PLACE(keepdims), .needs = "axis"},
    {"output", "FILE", "where results along an axis go: .npy, .npz, .nc or raw (default: they are printed)", OPTION_FILE,
     PLACE(output), .letter = 'o', .needs = "axis"},

    GROUP(WEIGHTS),
    {"weights", "W|DIM=W|cos:DIM", "weights: an input that broadcasts, one of a dimension, cosines of latitudes", OPTION_TEXT, PLACE(weights)},

    GROUP(VALUES),
    {"values", "FILE", "where the elements at the indices along an axis go", OPTION_FILE, PLACE(values), .needs = "output"},

    GROUP(DDOF),
    {"ddof", "N", "divide the variance by the number of elements less N (default: 0)", OPTION_COUNT, PLACE(ddof)},

    GROUP(COMPARE),
    {"atol", "X", "|a - b| may be X, and --rtol |b| more (default: 0)", OPTION_NUMBER, PLACE(compare.atol), .most = DBL_MAX},
    {"rtol", "X", "the same, relative to |b| (default: 0)", OPTION_NUMBER, PLACE(compare.rtol), .most = DBL_MAX},
    {"equal-nan", NULL, "NaN is equal to NaN", OPTION_FLAG, PLACE(compare.equal_nan)},
    {"first", "N", "list the first N places outside, at most 1000 (default: none)", OPTION_INTEGER, PLACE(compare.first), .least = 1,
     .most = COMPARE_FIRST_MOST},

    GROUP(QUANTILE),
    {"q", "Q[,Q]...", "which quantiles, from 0 to 1; 0.5 is the median", OPTION_TEXT, PLACE(order.q), .required = true},
    {"method", "linear|lower|higher|nearest|midpoint", "between two elements, as in NumPy (default: linear)", OPTION_CHOICE,
     PLACE(order.method)},

    GROUP(TOPK),
    {"k", "COUNT", "how many elements, at most 2^20", OPTION_COUNT, PLACE(order.k), .least = 1, .required = true},
    {"smallest", NULL, "the smallest elements in place of the largest", OPTION_FLAG, PLACE(order.smallest)},
    {"output", "FILE", "an .npz file with values and indices (default: they are printed)", OPTION_FILE, PLACE(output), .letter = 'o'},

    GROUP(BINS),
    {"bins", "COUNT", "how many bins of even width, at most 2^20 (default: 10)", OPTION_COUNT, PLACE(order.bins), .least = 1},
    {"range", "A,B", "where they begin and end (default: at the least and the largest number)", OPTION_TEXT, PLACE(order.range)},
    {"edges", "FILE", "a file with the edges of bins of any width", OPTION_FILE, PLACE(order.edges)},
    {"output", "FILE", "an .npz file with counts and edges (default: they are printed)", OPTION_FILE, PLACE(output), .letter = 'o'},

    GROUP(OUTPUT),
    {"output", "FILE", "where elements go: .npy if it ends so, else raw; replaced on success only", OPTION_FILE,
     PLACE(output), .letter = 'o', .required = true},

    GROUP(OUTPUT_TYPE),
    {"output-type", "TYPE", "element type of the result: f16, bf16, f32 or f64 (default: the input's)", OPTION_FLOAT_TYPE,
     PLACE(output_type)},

    GROUP(CHECKPOINT),
    {"checkpoint", "FILE", "keep in FILE.RANK how far the fold has come; go on from there; removed on success",
     OPTION_FILE, PLACE(checkpoint)},
    {"checkpoint-every", "SECONDS", "time between two checkpoints (default: 30; 0: after each shard)", OPTION_NUMBER,
     PLACE(checkpoint_every), .least = 0, .most = 1e9, .needs = "checkpoint"},

    GROUP(BINDING),
    {"check", NULL, "fail where ranks share a device or cores, or have cores far from their GPU", OPTION_FLAG, PLACE(check)},

    GROUP(LADDER),
    {"count", "COUNT[,COUNT]...", "how many elements: counts, A-B or A-B:STEP (default: 2^24,2^28; no GPU: 2^12,2^20)", OPTION_TEXT,
     PLACE(ladder.counts)},
    {"shape", "ROWS,COLUMNS", "rows, columns: the matrix (default: several of 2^28 elements; no GPU: of 2^20)", OPTION_TEXT, PLACE(ladder.shapes)},
    {"type", "int32|f32|f64|all", "their type (default: f32)", OPTION_WORD, PLACE(ladder.type)},
    {"fold", "sum|max|all", "what is computed of them (default: sum)", OPTION_WORD, PLACE(ladder.fold)},
    {"block", "64|128|256|512|1024|all", "threads of a block (default: 256)", OPTION_WORD, PLACE(ladder.block)},
    {"rung", "NAME", "run this rung only, a name of --list", OPTION_TEXT, PLACE(ladder.rung)},
    {"columns", "COUNT", "coalescing: columns of the matrix (default: as many as rows)", OPTION_COUNT,
     PLACE(ladder.columns), .least = 1},
    {"check", NULL, "compare with the oracle, time nothing (default: all types, folds, and many sizes)", OPTION_FLAG,
     PLACE(check)},
    {"list", NULL, "print the topic's rungs and their ideas", OPTION_FLAG, PLACE(ladder.list)},

    GROUP(BENCH),
    {"count", "COUNT[,COUNT]...|all", "how many elements a rank has (default: a short set; all: 2^10 to 2^31)",
     OPTION_TEXT, PLACE(bench.counts)},
    {"total", NULL, "counts are of all ranks together, and divided among them", OPTION_FLAG, PLACE(bench.total)},
    {"type", "TYPE[,TYPE]...|all", "their types: f32, f64, bf16, f16, int32 (default: f32)", OPTION_TEXT,
     PLACE(bench.types)},
    {"range", "1|2|4|8|16|32|64|128|256|512", "floating-point ones are uniform in [-RANGE, RANGE) (default: 8)", OPTION_WORD,
     PLACE(bench.range)},
    {"fold", "FOLD[,FOLD]...|all", "what is computed of them, as --list names it (default: sum,max,sumexp,softmax)",
     OPTION_TEXT, PLACE(bench.folds)},
    {"length", "COUNT[,COUNT]...", "fold along an axis of this length; there are --count / length rows", OPTION_TEXT, PLACE(bench.lengths)},
    {"axis", "last|middle|first[,...]", "which axis that is: rows (default), columns of planes, columns", OPTION_TEXT, PLACE(bench.axes),
     .needs = "length"},
    {"cut-axis", NULL, "spread each row over the ranks, so that each has LENGTH elements of it", OPTION_FLAG, PLACE(bench.cut_axis),
     .needs = "length"},
    {"ranks", "N[,N]...|all", "measure on the first N ranks, one N after the other (all: 1, 2, 4, ...)", OPTION_TEXT,
     PLACE(bench.ranks)},
    {"data", "device|host|file", "where the data is: device memory (default), pinned host memory, files made here", OPTION_CHOICE,
     PLACE(bench.place)},
    {"warm", NULL, "leave the caches as they are (default: clear them before each run)", OPTION_FLAG, PLACE(bench.warm)},
    {"seconds", "S", "time for one count, type and fold, about (default: 0.3)", OPTION_NUMBER, PLACE(bench.seconds),
     .least = 0.001, .most = 3600},
    {"survey", NULL, "measure each rank's device and links only, no folds", OPTION_FLAG, PLACE(bench.survey)},
    {"slow", "PERCENT", "fail where a device or link is below this part of the ranks' median (0: never)", OPTION_NUMBER_OR_0,
     PLACE(bench.slow), .least = 1, .most = 100},
    {"baseline", "FILE", "compare with what --json printed before; fail where allfold became slower", OPTION_FILE,
     PLACE(bench.baseline)},
    {"tolerance", "PERCENT", "slower than the baseline by more than this is a failure (default: 10)", OPTION_NUMBER,
     PLACE(bench.tolerance), .least = 0.001, .most = 10000, .needs = "baseline"},
    {"list", NULL, "print the subjects and the peers", OPTION_FLAG, PLACE(bench.list)},

    GROUP(DEVICE),
    {"device-memory", "SIZE", "device memory that a rank may use (default: 3/4 of what is free)", OPTION_SIZE,
     PLACE(context.device_memory), .least = 1},

    GROUP(COMMON),
    {"backend", "auto|cuda|cpu", "what computes (default: auto, which is cuda where a GPU is visible)", OPTION_CHOICE,
     PLACE(context.backend)},
    {"staging", "SIZE", "what a thread reads and folds at a time (default: 4Mi)", OPTION_SIZE, PLACE(context.staging_bytes),
     .least = 1},
    {"threads", "N", "CPU threads of a rank (default: its share of the cores)", OPTION_INTEGER, PLACE(context.threads),
     .least = 1, .most = 4096},
    {"exchange", "auto|mpi", "how ranks combine: in memory within hosts, MPI between them; or MPI alone",
     OPTION_CHOICE, PLACE(context.exchange)},
    {"timeout", "SECONDS", "end the job when a rank is not heard from for so long (default: 300; 0: never)",
     OPTION_NUMBER_OR_0, PLACE(timeout), .least = 1, .most = 1e9},
    {"json", NULL, "print the report as one JSON object", OPTION_FLAG, PLACE(json)},
    {"quiet", NULL, "print nothing but the value", OPTION_FLAG, PLACE(quiet), .letter = 'q'},
    {"verbose", NULL, "say on standard error which rank does what, where, and how long the start took", OPTION_FLAG, PLACE(verbose), .letter = 'v'},
    {"help", NULL, "print this help", OPTION_FLAG, PLACE(help), .letter = 'h'},

    {0},
};
