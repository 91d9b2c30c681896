/* The kernels' own sources on the host: every monoid of every element type, and every softmax, at sizes around all that
   the kernels cut by, against the definitions in src/fold as the CPU backend runs them. Every launch is repeated in other
   orders of threads and blocks: no bit may change. Input and output are allocated to the byte, for AddressSanitizer. */
#define TAP_WITHOUT_MPI
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <set>
#include <vector>

extern "C" {
#include "base/elements.h"
#include "device/cpu/loops.h"
#include "fold/table.h"
#include "tests/tap.h"
}
#include "emulation.h"
#include "kernels/kernels.h"
#include "kernels/tuning.h"

static const struct {
    const char *name;
    bool words; /* its partial begins with words that are added */
} monoids[] = {
#define ROW(name, ...) {#name, false},
    STRUCT_MONOIDS(ROW)
#undef ROW
#define ROW(name, ...) {#name, true},
    WORD_MONOIDS(ROW)
#undef ROW
};

/* Values that are drawn for the elements. SMALL: integers, whose sums and squares are exact in every order. UNITS: so that
   products are, too. LIMITS: the widest range that the answers have room for. SPECIAL: NaN, infinities, ties. FULL: of one sign,
   and what no window holds. */
enum choice { SMALL, UNITS, ROUGH, LIMITS, SPECIAL, DRAW_COUNT, FULL };

struct job {
    enum monoid monoid;
    allfold_type type;
    uint64_t n, first;
    uint64_t offset; /* elements from a 16-byte boundary, where x is not on one */
    int multiprocessors;
    enum choice draw;
    uint64_t seed = 0; /* of another array of the same job */
};

static char reason[400]; /* why a job failed */
__attribute__((format(printf, 1, 2))) static bool failed(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    return false;
}

/* splitmix64 */
static uint64_t hash_of(uint64_t i)
{
    uint64_t x = (i + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static double special_number(uint64_t i, uint64_t n, double otherwise)
{
    const double middle[] = {NAN, INFINITY, -INFINITY, -0.0, NAN, 3.0}, last[] = {1.0, 1.0, NAN, -INFINITY, NAN, 3.0};
    const uint64_t variant = n % 6;
    if (variant == 5 || variant == 3)
        otherwise = variant == 5 ? 3.0 : -0.0; /* ties */
    return i == n / 2 ? middle[variant] : i == n - 1 ? last[variant] : otherwise;
}

static double number_of(const struct job *job, uint64_t i)
{
    const uint64_t hash = hash_of(i + (job->seed << 40));
    const double sign = (hash & 1) != 0 ? -1.0 : 1.0, rough = 1.0 + (double)(hash >> 12) * 0x1p-52;
    const bool deviates = job->monoid == MONOID_stats || job->monoid == MONOID_stats_exact; /* and squares deviations */
    const bool multiplies = job->monoid == MONOID_dot;
    const int limit = job->type == ALLFOLD_F16 ? 14 : job->type != ALLFOLD_F64 ? 100 : deviates || multiplies ? 400 : 900;
    switch (job->draw) {
    case SMALL:
        return (double)(hash % 17) - 8.0;
    case UNITS:
        return i % 97 == 5 ? 2.0 * sign : sign;
    case LIMITS:
        return sign * ldexp(rough, (int)(hash / 2 % (uint64_t)(2 * limit)) - limit);
    case SPECIAL:
        return special_number(i, job->n, sign * rough);
    case FULL:
        return i % 2 == 0 ? ldexp(1.0, job->type == ALLFOLD_F64 ? -400 : -140) : job->type == ALLFOLD_F64 ? 4 - 0x1p-51 : 256 - 0x1p-15;
    default:
        return sign * ldexp(rough, (int)(hash / 2 % 21) - 10);
    }
}

static uint64_t integer_of(const struct job *job, uint64_t i)
{
    const uint64_t hash = hash_of(i + (job->seed << 40));
    const unsigned int bits = 8 * (unsigned int)allfold_type_bytes(job->type);
    const uint64_t top = (uint64_t)1 << (bits - 1), largest = type_kind(job->type) == 'i' ? top - 1 : top * 2 - 1;
    switch (job->draw) {
    case SMALL:
        return hash % 17 - (type_kind(job->type) == 'i' ? 8 : 0);
    case UNITS:
        return i % 97 == 5 ? 2 : type_kind(job->type) == 'i' && (hash & 1) != 0 ? UINT64_MAX : 1;
    case LIMITS:
        return (hash & 1) != 0 ? largest : largest + 1;
    case SPECIAL:
        return job->n % 3 == 0 && i == job->n - 1 ? 0 : 3;
    default:
        return hash;
    }
}

static void element_put(allfold_type type, void *at, double number, uint64_t integer)
{
    switch (type) {
#define CASE(ID, name)                                   \
    case ALLFOLD_##ID: {                                 \
        const element_##name element = round_##name(number); \
        memcpy(at, &element, sizeof element);            \
        break;                                           \
    }
        CASE(F16, f16)
        CASE(BF16, bf16)
        CASE(F32, f32)
        CASE(F64, f64)
#undef CASE
    default:
        memcpy(at, &integer, allfold_type_bytes(type)); /* little-endian */
    }
}

static double element_get(allfold_type type, const void *x, uint64_t i)
{
    switch (type) {
#define CASE(ID, name, numpy, bytes, kind, value) \
    case ALLFOLD_##ID:                            \
        return (double)load_##name(((const element_##name *)x)[i]);
        ALLFOLD_TYPES(CASE)
#undef CASE
    default:
        return NAN;
    }
}

/* Room for n elements that starts `offset` elements behind a 16-byte boundary and ends where the allocation ends. */
struct room {
    char *block, *start;
};
static struct room room_of(allfold_type type, uint64_t n, uint64_t offset)
{
    const size_t bytes = allfold_type_bytes(type);
    char *const block = (char *)malloc((offset + n) * bytes + (offset + n == 0));
    memset(block, 0x7b, offset * bytes); /* large numbers */
    return {block, block + offset * bytes};
}

static struct room input_of(const struct job *job, uint64_t offset)
{
    const struct room room = room_of(job->type, job->n, offset);
    const bool floating = type_kind(job->type) == 'f';
    for (uint64_t i = 0; i < job->n; i++)
        element_put(job->type, room.start + i * allfold_type_bytes(job->type), floating ? number_of(job, i) : 0,
                    floating ? 0 : integer_of(job, i));
    return room;
}

/* The sizes of what rounding errors are relative to. */
struct scale {
    double norm1, squares, products;
};
static struct scale scale_of(const struct job *job, const void *x, const void *y)
{
    struct scale scale = {0, 0, 0};
    for (uint64_t i = 0; i < job->n; i++) {
        const double number = element_get(job->type, x, i);
        if (fabs(number) <= 0x1p1000) {
            scale.norm1 += fabs(number);
            scale.squares += fabs(number) < 0x1p500 ? number * number : 0;
        }
        const double product = y == NULL ? 0 : fabs(number * element_get(job->type, y, i));
        scale.products += product <= 0x1p1000 ? product : 0;
    }
    return scale;
}

/* How far two results may lie apart. Integers, extremes and indices: not at all; nor sums, where all terms and sums are
   exact. The rest: rounding errors, of f64 sums for the narrower types, of the last place for f64. */
static double tolerance_of(const struct job *job, allfold_fold fold, const char *field, double value,
                           const struct scale *scale)
{
    const double n = (double)job->n, unit = job->type == ALLFOLD_F64 ? 1e-15 : 1e-12;
    const bool floating = type_kind(job->type) == 'f';
    const auto is = [=](allfold_fold of, const char *name) {
        return fold == of || (fold == ALLFOLD_STATS && strcmp(field, name) == 0);
    };
    if (fold == ALLFOLD_LOGSUMEXP) { /* terms are f32 in two of the three monoids */
        const bool f32 = type_value(job->type) == VALUE_f32 && job->monoid != MONOID_sumexp_f64;
        return f32 ? 1e-6 : 1e-12 + 1e-15 * fabs(value);
    }
    if (monoids[job->monoid].words)
        return 0;
    if (floating && is(ALLFOLD_VARIANCE, "variance"))
        return 1e-12 * scale->squares / n;
    if (floating && fold == ALLFOLD_STD) /* the root of such a variance */
        return fmin(1e-6 * sqrt(scale->squares / n), 1e-12 * scale->squares / n / value);
    if (!floating || job->draw == UNITS || (job->draw == SMALL && fold != ALLFOLD_PROD))
        return 0;
    if (is(ALLFOLD_SUM, "sum") || is(ALLFOLD_MEAN, "mean"))
        return unit * scale->norm1 / (is(ALLFOLD_SUM, "sum") ? 1 : n);
    if (fold == (allfold_fold)FOLD_DOT)
        return unit * scale->products;
    if (is(ALLFOLD_NORM1, "norm1") || is(ALLFOLD_NORM2, "norm2"))
        return unit * fabs(value);
    return fold == ALLFOLD_PROD ? 1e-15 * fabs(value) : 0;
}

static bool fields_agree(const struct job *job, allfold_fold fold, const struct fold_results *found,
                         const struct fold_results *expected, const struct scale *scale)
{
    if (found->field_count != expected->field_count)
        return failed("%d fields, not %d", found->field_count, expected->field_count);
    for (int i = 0; i < found->field_count; i++) {
        const auto &a = found->fields[i], &b = expected->fields[i];
        const double x = a.value.f64, y = b.value.f64;
        const bool floating = b.value.kind == ALLFOLD_VALUE_F64;
        const double tolerance = floating ? tolerance_of(job, fold, b.name, y, scale) : 0;
        const bool equal = a.value.u64 == b.value.u64 || (floating && ((x != x && y != y) || fabs(x - y) <= tolerance));
        if (strcmp(a.name, b.name) != 0 || a.value.kind != b.value.kind || a.index != b.index || !equal)
            return failed("%s: %s is %.17g (%llx, index %lld), not %.17g (%llx, index %lld)", allfold_fold_name(fold),
                          a.name, allfold_number(a.value), (unsigned long long)a.value.u64, (long long)a.index,
                          allfold_number(b.value), (unsigned long long)b.value.u64, (long long)b.index);
    }
    return true;
}

/* Whether two partials mean the same, in every fold that the monoid computes. */
static bool partials_agree(const struct job *job, const struct partial *found, const struct partial *expected,
                           const struct scale *scale)
{
    const allfold_level level = monoids[job->monoid].words ? ALLFOLD_LEVEL_EXACT : ALLFOLD_LEVEL_FAST;
    const bool sumexp = monoid_facts[job->monoid].terms != TERMS_NONE;
    if (sumexp && monoid_facts[job->monoid].level == ALLFOLD_LEVEL_EXACT)
        return memcmp(found, expected, monoid_bytes(job->monoid, job->type)) == 0 || failed("not the bits of the CPU");
    for (int f = 0; f < FOLD_COUNT; f++) {
        const allfold_fold fold = (allfold_fold)f;
        if (sumexp ? fold != ALLFOLD_LOGSUMEXP : fold_monoid(fold, level, job->type) != job->monoid)
            continue;
        for (int nan = 0; nan <= (fold_has_nan_choice(fold) ? ALLFOLD_NAN_ERROR : 0); nan++) {
            struct error a_error = {}, b_error = {};
            struct fold_results a = {}, b = {};
            const struct fold_call call = {fold, level, (allfold_nan)nan, ALLFOLD_TYPE_NONE, 0, nullptr, nullptr, nullptr};
            const struct folded whole = {job->type, job->n, found}, due = {job->type, job->n, expected};
            const allfold_status status = fold_finish(&call, &whole, &a, &a_error);
            fold_finish(&call, &due, &b, &b_error);
            if (status != b_error.status || strcmp(a_error.text, b_error.text) != 0)
                return failed("%s: '%s', not '%s'", allfold_fold_name(fold), a_error.text, b_error.text);
            if (status == ALLFOLD_OK && !fields_agree(job, fold, &a, &b, scale))
                return false;
        }
    }
    return true;
}

/* One launch of many with the same scratch memory, each in another order. */
static bool fold_launched(const struct job *job, const void *const arrays[2], struct fold_space *space, struct partial *result)
{
    static uint64_t launches;
    const size_t bytes = monoid_bytes(job->monoid, job->type);
    struct fold_mailbox mailbox = {};
    space->mailbox = &mailbox;
    memset(result, 0, sizeof *result);
    emulation_order(launches % 8 == 0 ? 0 : launches);
    launches++;
    if (fold_result(&mailbox, space->launch_id == UINT32_MAX ? 1 : space->launch_id + 1, bytes, result))
        return failed("a result is there before the launch");
    const struct work work = {job->monoid, job->type, arrays[0], job->n, job->first, arrays[1], NULL};
    const int code = fold_launch(&work, space, NULL);
    if (code != 0)
        return failed("the launch fails with %d: %s", code, emulation_fault());
    for (size_t i = 2 * bytes; i < sizeof mailbox; i++)
        if (((const char *)&mailbox)[i] != 0)
            return failed("writes byte %zu of the mailbox", i);
    return fold_result(&mailbox, space->launch_id, bytes, result) || failed("leaves no result");
}

/* Folds the same elements three times: the same bits again, and from where they are not aligned to 16 bytes. */
static bool fold_job(const struct job *job)
{
    struct job second = *job;
    second.seed = 1;
    const struct room room = input_of(job, 0), moved = room_of(job->type, job->n, job->offset), other = input_of(&second, 0);
    const bool two = monoid_facts[job->monoid].operands == 2;
    const void *const x = job->n == 0 ? NULL : room.start, *const y = two && job->n > 0 ? other.start : NULL;
    const void *const arrays[2] = {x, y}, *const elsewhere_arrays[2] = {moved.start, y};
    /* the last numbers, and the first again */
    struct fold_space space = {job->multiprocessors, calloc(1, fold_scratch_bytes(job->multiprocessors)), NULL, UINT32_MAX - 1};
    struct partial expected, found, again, elsewhere;
    if (job->n > 0)
        memcpy(moved.start, x, job->n * allfold_type_bytes(job->type));
    monoid_identity(job->monoid, job->type, &expected);
    const struct work work = {job->monoid, job->type, x, job->n, job->first, y, NULL};
    if (job->n > 0)
        cpu_loops_base.fold(&work, &expected);
    const struct scale scale = scale_of(job, x, y);
    const bool exact = monoids[job->monoid].words; /* words may be normalised or not */
    bool right = fold_launched(job, arrays, &space, &found) && fold_launched(job, arrays, &space, &again)
                 && fold_launched(job, elsewhere_arrays, &space, &elsewhere)
                 && partials_agree(job, &found, &expected, &scale);
    if (right && !exact && memcmp(&found, &again, sizeof found) != 0)
        right = failed("a second launch, in another order, gives other bits");
    if (right && exact)
        right = partials_agree(job, &again, &expected, &scale) && partials_agree(job, &elsewhere, &expected, &scale);
    else if (right && memcmp(&found, &elsewhere, sizeof found) != 0)
        right = failed("the same elements, %llu from a boundary, give other bits", (unsigned long long)job->offset);
    free(room.block);
    free(moved.block);
    free(other.block);
    free(space.scratch);
    return right;
}

static void add_around(std::set<uint64_t> *sizes, uint64_t n)
{
    sizes->insert({n - 1, n, n + 1});
}

/* Sizes around everything that work is cut by: a vector, a vector for each thread, a block's round, the grid's. */
static std::set<uint64_t> sizes_of(uint64_t per_vector, uint64_t threads, uint64_t vectors, uint64_t blocks)
{
    const uint64_t block = per_vector * threads * vectors, grid = block * blocks;
    std::set<uint64_t> sizes = {0, 2, 2 * block + 3 * per_vector + 1, grid + block / vectors, 2 * grid + block + 7};
    for (uint64_t n : {1, 32, 256, 1024})
        add_around(&sizes, n);
    for (uint64_t n : {per_vector, per_vector * threads, block, grid})
        add_around(&sizes, n);
    return sizes;
}

/* Whether a type before this one has kernels of the same shapes: as long, and with or without f32 as its value type. */
static bool shapes_are_known(allfold_type type)
{
    for (int before = ALLFOLD_TYPE_NONE + 1; before < type; before++)
        if (allfold_type_bytes((allfold_type)before) == allfold_type_bytes(type)
            && (type_value((allfold_type)before) == VALUE_f32) == (type_value(type) == VALUE_f32))
            return true;
    return false;
}

static void test_fold(enum monoid monoid, allfold_type type)
{
    if (!tap_wanted("%s of %s", monoids[monoid].name, allfold_type_name(type)))
        return;
    const size_t bytes = allfold_type_bytes(type);
    const struct monoid_facts *const facts = &monoid_facts[monoid];
    const enum cost cost = cost_of(facts->cost, type_value(type));
    const bool f32_terms = facts->terms != TERMS_NONE && facts->terms != TERMS_F64, words = monoids[monoid].words;
    const bool padded = facts->terms != TERMS_NONE && type_value(type) <= VALUE_f64;
    int count = 0;
    std::set<uint64_t> sizes;
    for (const bool small : {false, true}) {
        struct fold_shape shape = fold_shape_of(cost, bytes, facts->operands, f32_terms, padded, small);
        if (words) {
            const size_t value_bytes = type_value(type) == VALUE_f32 ? 4 : 8;
            const struct exact_shape exact = exact_shape_of(facts->cost, value_bytes, bytes);
            shape = {exact.threads, exact.blocks, exact.vectors, exact.vectors_per_tile, exact.vectors};
        }
        sizes.merge(sizes_of(16 / bytes, (uint64_t)shape.threads, (uint64_t)shape.vectors, (uint64_t)shape.blocks));
        const uint64_t round = 16 / bytes * (uint64_t)shape.threads * (uint64_t)shape.vectors;
        /* where blocks begin to end: that is many elements */
        const uint64_t waves = FOLD_WAVES.least * FOLD_WAVES.rounds * (uint64_t)shape.blocks * round;
        if (!small && cost == COST_LITTLE && !words
            && (monoid == MONOID_sum || type == ALLFOLD_F16 || type == ALLFOLD_F32 || type == ALLFOLD_F64 || type == ALLFOLD_INT32))
            sizes.insert(waves + round + 1);
        /* and where each of them takes a round more */
        if (type == ALLFOLD_F64 && monoid == MONOID_sum && !small)
            sizes.insert(FOLD_WAVES.rounds * FOLD_WAVES.most * round + round + 1);
        /* where blocks begin to claim chunks */
        if (type == ALLFOLD_F64 && monoid == MONOID_sum_exact && !small)
            add_around(&sizes, EXACT_CLAIM.least * (uint64_t)shape.blocks * round + 3 * round);
        /* and from where on arrays have a kernel of their own */
        const uint64_t step = (uint64_t)(EXACT_WHOLE_SHAPE.threads * exponentials_shape_of(type, false).vectors) * 16 / bytes;
        if (monoid == MONOID_sumexp_f64_exact && type_value(type) == VALUE_f32)
            add_around(&sizes, (EXACT_WHOLE_SHAPE.tiles - 1) * step + 1);
        for (uint64_t blocks : {1, 2}) /* one block, two; and where the small end, of one to three multiprocessors */
            add_around(&sizes, blocks * 16 / bytes * (uint64_t)shape.threads * (uint64_t)shape.least);
    }
    for (uint64_t multiprocessors : {1, 2, 3})
        add_around(&sizes, multiprocessors * FOLD_SMALL_BYTES / bytes);
    unsigned int turn = (unsigned int)monoid + (unsigned int)type;
    bool right = true;
    for (uint64_t n : sizes) {
        if (shapes_are_known(type) && ++turn % 5 != 0 && n < 100000) /* a fifth, of other sizes for each monoid */
            continue;
        const struct job job = {monoid,
                                type,
                                n,
                                count % 3 == 0 ? 0 : ((uint64_t)1 << 40) + 3,
                                1 + n % (16 / bytes - 1),
                                n > 100000 ? 1 : 1 + count % 3,
                                (enum choice)((count + (int)monoid) % DRAW_COUNT)};
        right = fold_job(&job);
        if (!right) {
            tap_note("n %llu, %d multiprocessors, draw %d: %s", (unsigned long long)n, job.multiprocessors, job.draw,
                     reason);
            break;
        }
        count++;
    }
    tap_ok(right && count > 0, "%s of %s, %d arrays", monoids[monoid].name, allfold_type_name(type), count);
}

/* Elements of one sign that no window holds, so many that the words of all threads are as full as they become before carries are
   put in order. */
static void test_full_words(void)
{
    static const struct {
        enum monoid monoid;
        allfold_type type;
        uint64_t n;
    } cases[] = {{MONOID_sum_exact, ALLFOLD_F64, 96 * 4 * 880},   {MONOID_norm1_exact, ALLFOLD_F64, 96 * 4 * 880},
                 {MONOID_norm2_exact, ALLFOLD_F64, 256 * 2 * 200}, {MONOID_norm2_exact, ALLFOLD_F32, 256 * 4 * 880},
                 {MONOID_stats_exact, ALLFOLD_F64, 256 * 2 * 100}, {MONOID_stats_exact, ALLFOLD_F32, 256 * 2 * 200},
                 {MONOID_sum_exact, ALLFOLD_F32, 512 * 2 * 200},   {MONOID_dot_exact, ALLFOLD_F64, 256 * 2 * 200},
                 {MONOID_dot_exact, ALLFOLD_F32, 256 * 4 * 880}};
    for (const auto &c : cases) {
        if (!tap_wanted("full words: %s of %s", monoids[c.monoid].name, allfold_type_name(c.type)))
            continue;
        const struct job job = {c.monoid, c.type, c.n, 0, 0, 1, FULL};
        const bool right = fold_job(&job);
        tap_ok(right, "full words: %s of %s", monoids[c.monoid].name, allfold_type_name(c.type));
        if (!right)
            tap_note("%s", reason);
    }
}

/* The definition: which arithmetic, and one rounding. */
static void softmax_put(const struct softmax_constants *c, bool logarithm, allfold_type x_type, const void *x,
                        allfold_type y_type, void *y, uint64_t i)
{
    const double number = element_get(x_type, x, i);
    void *const at = (char *)y + i * allfold_type_bytes(y_type);
    if (logarithm || type_value(x_type) != VALUE_f32 || y_type == ALLFOLD_F64) {
        element_put(y_type, at, logarithm ? log_softmax_f64(number, c) : softmax_f64(number, c), 0);
        return;
    }
    const float result = y_type == ALLFOLD_F32 ? softmax_f32((float)number, c) : softmax_short((float)number, c);
    const element_f16 f16 = f32_to_f16(result);
    const element_bf16 bf16 = f32_to_bf16(result);
    const void *const from = y_type == ALLFOLD_F16    ? (const void *)&f16
                             : y_type == ALLFOLD_BF16 ? (const void *)&bf16
                                                      : (const void *)&result;
    memcpy(at, from, allfold_type_bytes(y_type));
}

/* Softmax in one launch, or, chained, in several without the host. alone: the device makes the constants; else the kernel finds
   these, or none, in its mailbox. */
static bool resident_job(const struct job *job, bool logarithm, allfold_level level, bool alone, bool chained, bool ordered,
                         bool in_place, struct softmax_capacity room)
{
    const size_t bytes = allfold_type_bytes(job->type);
    const struct room x = input_of(job, 0), y = room_of(job->type, job->n, 0), expected = room_of(job->type, job->n, 0);
    void *const to = in_place ? x.start : y.start;
    struct partial whole, found;
    struct softmax_constants constants;
    struct fold_mailbox mailbox = {};
    struct fold_space space = {job->multiprocessors, calloc(1, fold_scratch_bytes(job->multiprocessors)), &mailbox,
                               alone ? UINT32_MAX : 0};
    const bool exact = level == ALLFOLD_LEVEL_EXACT;
    const enum monoid monoid = softmax_monoid(job->type, job->type, logarithm, level);
    const struct softmax_call call = {&space, room, alone, {x.start, to, job->type, job->type, box_of_row(job->n), job->n, 1, logarithm, level}};
    const struct work first_pass = {monoid, job->type, x.start, job->n, 0, NULL, NULL};
    bool written = !ordered;
    /* the constants of this very partial: from a fold of the same kernel */
    monoid_identity(monoid, job->type, &whole);
    cpu_loops_base.fold(&first_pass, &whole);
    softmax_constants_set(monoid, &whole, &constants);
    memset(y.start, 0x5c, job->n * bytes);
    memcpy(expected.start, to, job->n * bytes);
    for (uint64_t i = 0; ordered && i < job->n; i++)
        softmax_put(&constants, logarithm, job->type, x.start, job->type, expected.start, i);
    if (!alone && ordered)
        softmax_order(&mailbox, 1, &constants);

    emulation_order(job->n % 3 == 0 ? 0 : job->n);
    const int code = chained ? softmax_chained_launch(&call, NULL) : softmax_resident_launch(&call, NULL);
    bool right = (chained ? softmax_chained_fits(&call) : softmax_resident_fits(&call)) || failed("does not fit");
    right = right && (code == 0 || failed("the launch fails with %d: %s", code, emulation_fault()));
    right = right && (softmax_outcome(&mailbox, space.launch_id, &written) || failed("tells no outcome"));
    right = right && (written == ordered || failed(written ? "writes unbidden" : "does not write"));
    if (right && !alone) {
        const struct scale scale = scale_of(job, in_place ? expected.start : x.start, NULL);
        const struct job partial_job = {monoid, job->type, job->n, 0, 0, job->multiprocessors, job->draw};
        right = fold_result(&mailbox, space.launch_id, monoid_bytes(monoid, job->type), &found) || failed("leaves no partial");
        right = right && partials_agree(&partial_job, &found, &whole, &scale);
    }
    for (uint64_t i = 0; right && i < job->n; i++) {
        const double a = element_get(job->type, to, i), b = element_get(job->type, expected.start, i);
        /* the partial that the kernel makes by itself is rounded otherwise than the host's, or exact */
        const double off = alone && !exact ? fabs(b) * (job->type == ALLFOLD_F64 ? 1e-14 : 0x1p-7) + 1e-300 : 0;
        const bool same = memcmp((char *)to + i * bytes, expected.start + i * bytes, bytes) == 0;
        if (!same && (a == a || b == b) && !(fabs(a - b) <= off))
            right = failed("element %llu is %.17g, not %.17g", (unsigned long long)i, a, b);
    }
    free(x.block);
    free(y.block);
    free(expected.block);
    free(space.scratch);
    return right;
}

/* Sizes around a vector, a block's least, what registers and shared memory keep, and what is read again. */
static void test_resident(allfold_type type, bool logarithm, allfold_level level)
{
    struct softmax_capacity room = {};
    const uint64_t per_vector = 16 / allfold_type_bytes(type), threads = (uint64_t)RESIDENT_SHAPE.threads;
    const uint64_t least = per_vector * threads * (uint64_t)RESIDENT_SHAPE.least;
    const uint64_t registers = (uint64_t)RESIDENT_SHAPE.stage, others = 2 * registers; /* in shared memory */
    const uint64_t kept = 3 * per_vector * threads * (registers + others);
    std::set<uint64_t> sizes = {per_vector * threads * 17 + 3, per_vector * threads * 49 + 5, kept, kept + per_vector + 1};
    for (uint64_t n : {(uint64_t)2, per_vector, least, 2 * least, 3 * least, 3 * per_vector * threads * registers})
        add_around(&sizes, n);
    int count = 0;
    const char *const label = level == ALLFOLD_LEVEL_EXACT ? ", exact," : "";
    if (!tap_wanted("%ssoftmax of %s%s without the host or with its orders", logarithm ? "log-" : "", allfold_type_name(type), label))
        return;
    bool right = softmax_capacity_of(0, &room) == 0 && softmax_load(&room) == 0 && room.shared_bytes > 0 && room.cache_bytes > 0;
    room = {others * 16 * threads, 1 << 20, 0, false};
    for (uint64_t n : sizes)
        for (int way = 0; right && way < (logarithm || type != ALLFOLD_F32 ? 4 : 8); way++) {
            /* way: by itself, with orders, in place, without orders; and the same chained, which only f32 is */
            const bool chained = way > 3, alone = way % 2 == 0 && !logarithm;
            const struct job job = {MONOID_sumexp, type, n, 0, 0, 3, (enum choice)((count + way) % DRAW_COUNT)};
            if (n > 20000 && (n <= kept || chained) && (n + (uint64_t)way) % 3 != 0)
                continue;
            if (shapes_are_known(type) && (n + (uint64_t)way) % 2 != 0)
                continue;
            right = resident_job(&job, logarithm, level, alone, chained, way % 4 != 3, way % 4 == 2, room);
            if (!right)
                tap_note("n %llu, way %d, draw %d: %s", (unsigned long long)n, way, job.draw, reason);
            count++;
        }
    tap_ok(right && count > 0, "%ssoftmax of %s%s without the host or with its orders, %d arrays", logarithm ? "log-" : "",
           allfold_type_name(type), label, count);
}

/* Rows of `length`, `gap` elements apart, read once. whole: blocks may wait for each other. taken: whether a kernel takes them. */
struct rows_case {
    uint64_t rows, length, gap;
    bool whole, in_place, taken;
    uint64_t inner = 1; /* more: columns, of which so many lie side by side, in `rows` planes */
    uint64_t shift = 0; /* y begins so many elements further */
};

/* Between two results at level fast: an ulp of 16 bits, 6 ulp of f32 (1.5 and 4.1 are the bounds of the two). */
static double row_tolerance(allfold_type type, double y)
{
    switch (type) {
    case ALLFOLD_F64:
        return fabs(y) * 1e-14 + 1e-300;
    case ALLFOLD_F32:
        return fmax(fabs(y), 0x1p-126) * 6 * 0x1p-23;
    case ALLFOLD_F16:
        return fmax(fabs(y), 0x1p-14) * 0x1p-10;
    default:
        return fmax(fabs(y), 0x1p-126) * 0x1p-7;
    }
}

/* Rows stay in registers: 64 KiB of shared memory are for the next ones. */
static bool is_light(allfold_type type, allfold_level level) { return level == ALLFOLD_LEVEL_FAST && type != ALLFOLD_F64; }

static bool rows_job(const struct rows_case *c, const struct job *job, bool logarithm, allfold_level level)
{
    const uint64_t step = c->inner > 1 ? c->inner + c->gap : 1, stride = c->inner > 1 ? c->length * step : c->length + c->gap, n = job->n;
    const size_t bytes = allfold_type_bytes(job->type);
    const struct room x = input_of(job, job->offset), y = room_of(job->type, n, job->offset + c->shift), expected = room_of(job->type, n, 0);
    const struct room row = room_of(job->type, c->length, 0);
    char *const to = c->in_place ? x.start : y.start;
    for (uint64_t i = 0; i < c->length * 2 / 3 && job->draw == UNITS; i++) /* some blocks have nothing but -inf of the first row */
        element_put(job->type, x.start + i * bytes, -INFINITY, 0);
    if (job->draw == UNITS && c->length > 1 && c->rows * c->inner > 1) /* one of the last plane has a NaN */
        element_put(job->type, x.start + ((c->rows - 1) * stride + c->length / 2 * step + c->inner / 2) * bytes, NAN, 0);
    const enum monoid monoid = softmax_monoid(job->type, job->type, logarithm, level);
    struct fold_space space = {job->multiprocessors, calloc(1, fold_scratch_bytes(job->multiprocessors)), NULL, UINT32_MAX - 3};
    struct fold_mailbox mailbox = {};
    const struct softmax_capacity capacity = {c->whole ? (size_t)1 : 0, 0, is_light(job->type, level) ? (size_t)64 << 10 : (size_t)40 << 10, false};
    space.mailbox = &mailbox;
    memset(y.start, 0x5c, n * bytes);
    memcpy(expected.start, to, n * bytes);
    for (uint64_t r = 0; r < c->rows * c->inner; r++) {
        const uint64_t first = r / c->inner * stride + r % c->inner;
        struct partial partial;
        struct softmax_constants constants;
        const struct work work = {monoid, job->type, row.start, c->length, 0, NULL, NULL};
        for (uint64_t i = 0; i < c->length; i++)
            memcpy(row.start + i * bytes, x.start + (first + i * step) * bytes, bytes);
        monoid_identity(monoid, job->type, &partial);
        cpu_loops_base.fold(&work, &partial);
        softmax_constants_set(monoid, &partial, &constants);
        for (uint64_t i = 0; i < c->length; i++)
            softmax_put(&constants, logarithm, job->type, x.start, job->type, expected.start, first + i * step);
    }
    const struct box box = {c->rows, c->length, c->inner, stride, step};
    const struct row_softmax_call call = {&space, capacity, {x.start, to, job->type, job->type, box, stride, step, logarithm, level}};
    bool launched = false, right = true;
    emulation_order(n);
    const int code = row_softmax_launch(&call, NULL, &launched);
    right = (code == 0 || failed("the launch fails with %d: %s", code, emulation_fault()))
            && (launched == c->taken || failed(launched ? "it is taken" : "it is not taken"));
    for (uint64_t i = 0; right && launched && i < n; i++) {
        const double a = element_get(job->type, to, i), b = element_get(job->type, expected.start, i);
        const double forgotten = logarithm ? (double)c->length * 0x1p-96 : 0; /* by exact sums, with which it is compared */
        const double off = level == ALLFOLD_LEVEL_EXACT ? 0 : row_tolerance(job->type, b) + forgotten;
        const bool same = memcmp(to + i * bytes, expected.start + i * bytes, bytes) == 0;
        if (!same && (a == a || b == b) && !(fabs(a - b) <= off))
            right = failed("element %llu of row %llu is %.17g, not %.17g", (unsigned long long)(i % stride), (unsigned long long)(i / stride), a, b);
    }
    free(x.block);
    free(y.block);
    free(row.block);
    free(expected.block);
    free(space.scratch);
    return right;
}

/* Rows of one vector and less, of parts of warps, two to five warps and a block; then of one stage in shared memory, of all that a block has, of two blocks
   and more; what no kernel takes; and more rows than a device has room for, several times over. */
static void test_rows(allfold_type type, bool logarithm, allfold_level level)
{
    const uint64_t each = 16 / allfold_type_bytes(type), most = each * (uint64_t)ROW_SHAPE.threads * (uint64_t)ROW_SHAPE.vectors;
    const uint64_t stage = each * (uint64_t)HEAVY_SHAPE.threads * (uint64_t)HEAVY_SHAPE.stage;
    const uint64_t alone = is_light(type, level) ? each * (uint64_t)LONG_THREADS * 16 : 2 * stage;
    const struct rows_case cases[] = {
        {3, 1, 0, false, false, true},          {70, each - 1, 0, false, false, true},     {9, 4 * each, 0, false, true, true},
        {65, 5 * each + 1, 2, false, false, true}, {7, 33 * each - 1, 1, false, true, true}, {5, 200 * each, each, false, false, true},
        {2, most, 0, false, false, true},       {5, most + each, each, false, true, true}, {3, 2 * stage, 0, true, false, true},
        {5, alone - each, 0, false, true, true}, {5, alone + each, 0, true, true, true}, {3, 5 * stage - each, each, true, false, true},
        {1, most + 1, 0, true, false, false},   {2, alone + each, 0, false, false, false}, {60, most + each, 0, false, false, true},
        {60, 2 * most + each, 0, false, true, alone > 2 * most}, {11, 300 * each, 0, false, true, true}, {7, 140 * each, each, false, true, true},
        {5, 530 * each + 1, 1, false, false, true}, {3, most + 300 * each, 0, false, true, true}, {300, 2 * each + 1, 0, false, true, true},
        {530, 5, 0, false, false, true},        {260, 8 * each, 0, false, true, true},   {41, 31 * each + 1, 0, false, false, true},
        {20, 77, 0, false, true, true},         {3, most - each / 2, 0, false, false, true}, {60, most, 0, false, true, true}, {60, most - 100 * each, 0, false, false, true},
        {40, 3 * each + 1, 0, false, false, true, 1, 1}, {30, 8 * each, 0, false, false, true, 1, each / 2}};
    int count = 0;
    bool right = true;
    if (!tap_wanted("%ssoftmax of rows of %s, level %d", logarithm ? "log-" : "", allfold_type_name(type), (int)level))
        return;
    for (const struct rows_case &c : cases)
        for (int draw = 0; right && draw < (c.length > most && c.rows < 60 ? DRAW_COUNT : 1); draw++, count++) {
            const struct job job = {MONOID_sumexp, type, c.rows * (c.length + c.gap), 0, count % 3 == 1 && c.length <= most ? 1u : 0, c.rows < 60 ? 3 : 1,
                                    (enum choice)(c.length > most && c.rows < 60 ? draw : count % DRAW_COUNT)};
            right = rows_job(&c, &job, logarithm, level);
            if (!right)
                tap_note("%llu x %llu, draw %d: %s", (unsigned long long)c.rows, (unsigned long long)c.length, job.draw, reason);
        }
    tap_ok(right, "%ssoftmax of rows of %s, level %d, %d arrays", logarithm ? "log-" : "", allfold_type_name(type), (int)level, count);
}

/* Columns of one element and more, of a tile of each thread and of all that a block keeps; side by side in vectors, in words, and in neither; and one element more than
   a block keeps. */
static void test_columns(allfold_type type, bool logarithm, allfold_level level)
{
    const uint64_t each = 16 / allfold_type_bytes(type);
    const uint64_t tile = 64 * (uint64_t)COLUMNS_SHAPE.threads / COLUMNS_SHAPE.least, most = COLUMNS_SHAPE.tiles_most * tile;
    const struct rows_case cases[] = {
        {3, 1, 0, false, false, true, 24},         {2, 5, 0, false, true, true, 6},           {1, 17, each, false, true, true, 33 * each},
        {2, 63, 1, false, false, true, 5},    {2, 64, 2, false, false, true, 10},        {3, tile - 1, 0, false, true, true, each},
        {1, tile + 1, 0, false, false, true, 70},  {1, 3 * tile, 2, false, true, true, 32},   {2, most, 0, false, false, true, 2 * each},
        {1, most + 1, 0, false, false, false, 32}, {4, 100, 0, false, false, true, 3},   {1, 3, 0, false, false, true, 2048},
        {2, 20, 2, false, true, true, 1024},        {1, COLUMNS_SHAPE.elements_most + 1, 0, false, false, each < 8, 5}, {3, 40, 0, false, false, true, 66, 1}};
    int count = 0;
    bool right = true;
    if (!tap_wanted("%ssoftmax of columns of %s, level %d", logarithm ? "log-" : "", allfold_type_name(type), (int)level))
        return;
    for (const struct rows_case &c : cases)
        for (int draw = (int)(&c - cases) % 3; right && draw < DRAW_COUNT; draw += 3, count++) {
            const uint64_t offset = count % 4 != 1 ? 0 : c.length <= COLUMNS_SHAPE.elements_most ? 1 : 2, n = c.rows * c.length * (c.inner + c.gap);
            const struct job job = {MONOID_sumexp, type, n, 0, offset, 3, (enum choice)draw};
            right = rows_job(&c, &job, logarithm, level);
            if (!right)
                tap_note("%llu x %llu x %llu, draw %d: %s", (unsigned long long)c.rows, (unsigned long long)c.length, (unsigned long long)c.inner, job.draw, reason);
        }
    tap_ok(right, "%ssoftmax of columns of %s, level %d, %d arrays", logarithm ? "log-" : "", allfold_type_name(type), (int)level, count);
}

/* Sums of exponentials of rows and columns, as the CPU has them. */
static bool sums_job(const struct box &box, bool taken, const struct job *job)
{
    const size_t bytes = allfold_type_bytes(job->type), each = partial_stride(job->monoid, job->type);
    const uint64_t results = box.outer * box.inner, room = results * each * 200;
    const struct room x = input_of(job, job->offset);
    const struct room alone = room_of(job->type, box.length, 0);
    void *const partials = calloc(1, room);
    struct axis_work work = {};
    bool launched;
    /* maxima that come to 2048 and pass it; and about 32768 and -32512, from where on terms are computed otherwise, of which some threads have only -inf at first, or the largest;
       elements of several bins, of which many are -inf, also all of a thread; small elements beside such as count no more */
    for (uint64_t r = 1; r < results && job->draw == UNITS; r += 2)
        for (uint64_t i = 0; i < box.length; i++) {
            const uint64_t at = r / box.inner * box.outer_stride + r % box.inner + i * box.axis_stride;
            const double unit = fmod(0.6180339887498949 * (double)(i + r), 1), part = (double)i / (double)box.length;
            const double masked = part > 0.5 || i % 10 == 3 ? -INFINITY : 70 * unit - 35, small = i < 8 ? 300 : i % 3 == 0 ? 0x1p-20 : unit;
            const double above = 32752 + (i == box.length * 2 / 5 ? 32 : 0), below = i % 64 >= 8 ? -32512 : i < box.length / 3 ? -INFINITY : -32515;
            element_put(job->type, x.start + at * bytes,
                        r % 16 == 1 ? masked : r % 16 == 5 ? small : r % 8 == 3 ? above : r % 8 == 7 ? below : 2038 + 20 * part + element_get(job->type, x.start, at), 0);
        }
    work.monoid = job->monoid;
    work.type = job->type;
    work.x = x.start;
    work.box = box;
    work.partials = partials;
    work.bytes = room;
    emulation_order(job->n);
    int code = 0;
    for (const auto launch : {logits_launch, counted_rows_launch, exponentials_launch}) {
        code = launch(&work, job->multiprocessors, NULL, &launched);
        if (code != 0 || launched)
            break;
    }
    bool right = (code == 0 || failed("the launch fails with %d: %s", code, emulation_fault()))
                 && (launched == taken || failed(launched ? "it is taken" : "it is not taken"));
    for (uint64_t r = 0; right && launched && r < results; r++) {
        struct partial want;
        double found[2], expected[2]; /* the maximum; the sum */
        const uint64_t first = r / box.inner * box.outer_stride + r % box.inner;
        for (uint64_t i = 0; i < box.length; i++)
            memcpy(alone.start + i * bytes, (const char *)x.start + (first + i * box.axis_stride) * bytes, bytes);
        const struct work row = {job->monoid, job->type, alone.start, box.length, 0, NULL, NULL};
        monoid_identity(job->monoid, job->type, &want);
        cpu_loops_base.fold(&row, &want);
        if (job->monoid == MONOID_sumexp_f64_exact) { /* the same bits */
            struct softmax_constants own, right_ones;
            struct partial partial = {};
            memcpy(&partial, (char *)partials + r * each, each);
            softmax_constants_set(job->monoid, &partial, &own);
            softmax_constants_set(job->monoid, &want, &right_ones);
            if (own.max == own.max ? memcmp(&own, &right_ones, offsetof(struct softmax_constants, anchor)) != 0 : right_ones.max == right_ones.max)
                right = failed("result %llu has max %.17g and log %.17g, not %.17g and %.17g", (unsigned long long)r, own.max, own.log_sum, right_ones.max, right_ones.log_sum);
            continue;
        }
        memcpy(found, (char *)partials + r * each, sizeof found);
        memcpy(expected, &want, sizeof expected);
        const bool nan = expected[1] != expected[1], finite = fabs(expected[0]) < INFINITY;
        const bool far = job->monoid == MONOID_sumexp_quick && job->type != ALLFOLD_F32 && fabs(expected[0]) > 2048; /* the result is as large */
        const double most = job->monoid == MONOID_sumexp_half ? 0x1p-19 : far ? 4 * 0x1p-24 * fabs(expected[0]) : 2.5 * 0x1p-24;
        if (nan ? found[1] == found[1] : found[0] != expected[0] || found[1] != found[1] || (finite && !(fabs(found[1] / expected[1] - 1) <= most)))
            right = failed("result %llu is %.17g, %.17g, not %.17g, %.17g", (unsigned long long)r, found[0], found[1], expected[0], expected[1]);
    }
    free(partials);
    free(x.block);
    free(alone.block);
    return right;
}

/* Rows that are split among blocks, and cut among a block's warps; whole rows of warps, one and more of each; columns of one member and of several, of planes, of blocks that
   are not full, in splits, and rows that lie as columns; and what is left to other kernels. */
static void test_sums(allfold_type type)
{
    const uint64_t each = 16 / allfold_type_bytes(type), tile = 32 * (uint64_t)found_shape_of(4).vectors * each, least = 1024;
    const struct {
        struct box box;
        bool taken;
    } cases[] = {{{2, 25 * tile + 3, 1, 25 * tile + each, 1}, true}, {{70, 2 * tile + 1, 1, 2 * tile + 1, 1}, true}, {{131, least + 1, 1, least + 1, 1}, true},
                 {{123, 3 * tile - 1, 1, 3 * tile, 1}, true},        {{500, least, 1, least + each, 1}, true},          {{501, 513, 1, 515, 1}, true},
                 {{500, 511, 1, 512, 1}, false},                     {{70, 6 * tile, 1, 6 * tile, 1}, true},
                 {{3, least, 1, least, 1}, false},                   {{1, 16, 4098, 0, 4100}, true},                    {{1, 17, 2050, 0, 2050}, true},
                 {{3, 83, 402, 83 * 404, 404}, true},                {{1, 4099, 124, 0, 126}, true},                    {{124, 1025, 1, 1, 124}, true},
                 {{2, 700, 62, 700 * 62 + 2, 62}, true},             {{1, 15, 9000, 0, 9000}, false},                   {{1, 64, 30, 0, 30}, false},
                 {{1, 4100, 34, 0, 34}, false},                      {{1, 300, 375, 0, 375}, each == 4}};
    int count = 0;
    bool right = true;
    if (!tap_wanted("sums of exponentials of %s", allfold_type_name(type)))
        return;
    for (const auto &c : cases)
        /* every other pair of a monoid and a draw; of neighbouring cases the others */
        for (int draw = c.box.outer > 400 ? 0 : (int)(&c - cases) % 2; right && draw < (c.box.outer > 400 ? 1 : 3 * DRAW_COUNT); draw += 2, count++) {
            const struct box &box = c.box;
            static const enum monoid firsts[] = {MONOID_sumexp_half, MONOID_sumexp};
            const uint64_t n = (box.outer - 1) * box.outer_stride + (box.length - 1) * box.axis_stride + box.inner;
            const enum monoid monoids[] = {MONOID_sumexp_quick, firsts[type == ALLFOLD_F32], MONOID_sumexp_f64_exact};
            const uint64_t offset = box.axis_stride == 1 && box.inner == 1 && draw % 3 == 0 ? each - 1 : 0; /* the first row begins within a vector */
            const struct job job = {monoids[draw / DRAW_COUNT], type, n, 0, offset, 1, (enum choice)(draw % DRAW_COUNT)};
            right = sums_job(box, c.taken, &job);
            if (!right)
                tap_note("%llu x %llu x %llu, draw %d: %s", (unsigned long long)box.outer, (unsigned long long)box.length, (unsigned long long)box.inner, draw, reason);
        }
    /* level exact alone: rows that share warps, and begin within vectors, so that some of a warp end later; of which those of bf16 are counted by value */
    static const struct box exact[] = {{300, 511, 1, 511, 1}, {282, 891, 1, 893, 1}, {300, 128, 1, 128, 1}, {64, 1024, 1, 1024, 1}, {8, 25001, 1, 25003, 1}};
    for (const struct box &box : exact)
        for (const enum choice draw : {UNITS, SPECIAL}) {
            const struct job job = {MONOID_sumexp_f64_exact, type, box.outer * box.outer_stride, 0, 0, 1, draw};
            count++;
            if (right && !(right = sums_job(box, true, &job)))
                tap_note("%llu x %llu, level exact, draw %d: %s", (unsigned long long)box.outer, (unsigned long long)box.length, (int)draw, reason);
        }
    tap_ok(right, "sums of exponentials of %s, %d arrays", allfold_type_name(type), count);
}

/* Extremes and their places. The first row is -inf (or inf) alone, the second has NaNs; what lies between rows is larger. */
static bool extremes_job(const struct box &box, const struct job *job, bool places_wanted)
{
    const bool smallest = job->monoid == MONOID_argmin;
    const size_t bytes = allfold_type_bytes(job->type), each = partial_stride(job->monoid, job->type);
    const uint64_t results = box.outer * box.inner;
    const struct room x = input_of(job, job->offset);
    std::vector<double> values(results), partials(results * each * 200 / sizeof(double));
    std::vector<int64_t> indices(results);
    std::vector<bool> inside(job->n);
    uint32_t refused = 0;
    struct axis_finish finish = {};
    struct axis_work work = {};
    bool launched = false;
    const auto place = [&](uint64_t r, uint64_t i) { return r / box.inner * box.outer_stride + i * box.axis_stride + r % box.inner; };
    const auto get = [&](uint64_t r, uint64_t i) { return element_get(job->type, x.start, place(r, i)); };
    for (uint64_t i = 0; i < box.length; i++)
        element_put(job->type, x.start + place(0, i) * bytes, smallest ? INFINITY : -INFINITY, 0);
    for (uint64_t i = box.length / 3; i < box.length; i += box.length / 3)
        element_put(job->type, x.start + place(1, i) * bytes, NAN, 0);
    for (uint64_t r = 0; r < results; r++)
        for (uint64_t i = 0; i < box.length; i++)
            inside[place(r, i)] = true;
    for (uint64_t i = 0; i < job->n; i++)
        if (!inside[i])
            element_put(job->type, x.start + i * bytes, smallest ? -INFINITY : INFINITY, 0);
    finish.fold = smallest ? ALLFOLD_ARGMIN : ALLFOLD_ARGMAX;
    finish.nan = ALLFOLD_NAN_PROPAGATE;
    finish.count = box.length;
    finish.format = ALLFOLD_F64;
    finish.outputs = 1;
    finish.of[0] = {values.data(), places_wanted ? indices.data() : NULL, ALLFOLD_F64};
    finish.run = finish.step = results;
    finish.refused = &refused;
    work.monoid = job->monoid;
    work.type = job->type;
    work.x = x.start;
    work.box = box;
    work.first = 5;
    work.partials = partials.data();
    work.bytes = partials.size() * sizeof(double);
    work.finish = &finish;
    emulation_order(job->n);
    const int code = extremes_launch(&work, job->multiprocessors, NULL, &launched);
    bool right = (code == 0 || failed("the launch fails with %d: %s", code, emulation_fault())) && (launched || failed("it is not taken"));
    for (uint64_t r = 0; right && r < results; r++) {
        uint64_t at = 0;
        double best = get(r, 0);
        for (uint64_t i = 1; i < box.length && best == best; i++) {
            const double element = get(r, i);
            if (element != element || (smallest ? element < best : element > best))
                best = element, at = i;
        }
        if ((places_wanted && indices[r] != (int64_t)at + 5) || (best == best ? values[r] != best || signbit(values[r]) != signbit(best) : values[r] == values[r]))
            right = failed("row %llu has %g at %lld, not %g at %llu", (unsigned long long)r, values[r], (long long)indices[r], best, (unsigned long long)at + 5);
    }
    free(x.block);
    return right;
}

static void test_extremes(allfold_type type)
{
    const uint64_t each = 16 / allfold_type_bytes(type), tile = 32 * (uint64_t)found_shape_of(4).vectors * each, least = 1024;
    const struct box boxes[] = {{701, 513, 1, 520, 1},                      {2, 25 * tile + 3, 1, 25 * tile + each, 1}, {23, 5 * tile + 1, 1, 5 * tile + 2, 1}, {131, least + 1, 1, least + 1, 1},
                                {1, 17, 4098, 0, 4100},                     {3, 83, 402, 83 * 404, 404},               {1, 4099, 124, 0, 126}};
    int count = 0;
    bool right = true;
    if (!tap_wanted("places of extremes of %s", allfold_type_name(type)))
        return;
    for (const struct box &box : boxes)
        for (int draw = 0; right && draw < 2 * DRAW_COUNT; draw++, count++) {
            const uint64_t n = (box.outer - 1) * box.outer_stride + (box.length - 1) * box.axis_stride + box.inner;
            const uint64_t offset = box.axis_stride == 1 && box.length >= least && draw % 3 == 0 ? 1 : 0; /* the first row begins within a vector */
            const struct job job = {draw % 2 == 0 ? MONOID_argmax : MONOID_argmin, type, n, 0, offset, 1, (enum choice)(draw / 2)};
            right = extremes_job(box, &job, draw % 4 < 2);
            if (!right)
                tap_note("%llu x %llu x %llu, draw %d: %s", (unsigned long long)box.outer, (unsigned long long)box.length, (unsigned long long)box.inner, draw, reason);
        }
    tap_ok(right, "places of extremes of %s, %d arrays", allfold_type_name(type), count);
}

/* job: of x. in_place: y is x, of its type; else y_offset as job->offset. */
static bool softmax_job(const struct job *job, bool logarithm, allfold_type y_type, uint64_t y_offset, bool in_place)
{
    const struct room x = input_of(job, job->offset), y = room_of(y_type, job->n, y_offset);
    const struct room expected = room_of(y_type, job->n, 0);
    void *const to = in_place ? x.start : y.start;
    struct partial partial;
    struct softmax_constants constants;
    const enum monoid monoid = softmax_monoid(job->type, ALLFOLD_F32, false, ALLFOLD_LEVEL_FAST);
    monoid_identity(monoid, job->type, &partial);
    const struct work first_pass = {monoid, job->type, x.start, job->n, 0, NULL, NULL};
    if (job->n > 0)
        cpu_loops_base.fold(&first_pass, &partial);
    softmax_constants_set(monoid, &partial, &constants);
    for (uint64_t i = 0; i < job->n; i++)
        softmax_put(&constants, logarithm, job->type, x.start, y_type, expected.start, i);
    if (!in_place)
        memset(to, 0x5c, job->n * allfold_type_bytes(y_type));

    emulation_order(job->n % 3 == 0 ? 0 : job->n);
    const struct softmax_work work = {x.start, to, job->type, y_type, box_of_row(job->n), job->n, 1, logarithm, ALLFOLD_LEVEL_EXACT};
    const int code = normalise_launch(&work, NULL, &constants, job->multiprocessors, NULL);
    bool right = code == 0 || failed("the launch fails with %d: %s", code, emulation_fault());
    for (uint64_t i = 0; right && i < job->n; i++) {
        const size_t bytes = allfold_type_bytes(y_type);
        const double a = element_get(y_type, to, i), b = element_get(y_type, expected.start, i);
        if (memcmp((char *)to + i * bytes, expected.start + i * bytes, bytes) != 0 && (a == a || b == b))
            right = failed("element %llu is %.17g, not %.17g", (unsigned long long)i, a, b);
    }
    free(x.block);
    free(y.block);
    free(expected.block);
    return right;
}

static void test_softmax(allfold_type x_type, allfold_type y_type, bool logarithm)
{
    const uint64_t x_bytes = allfold_type_bytes(x_type), y_bytes = allfold_type_bytes(y_type);
    const bool f32 = type_value(x_type) == VALUE_f32;
    std::set<uint64_t> sizes = sizes_of(1, (uint64_t)AXIS_SHAPE.threads, f32 ? 8 : 4, (uint64_t)AXIS_SHAPE.blocks);
    if (x_type == y_type)
        sizes.merge(sizes_of(16 / x_bytes, 128, x_bytes == 2 ? 4 : 2, 1)); /* pass_shape_of */
    int count = 0;
    bool right = true;
    if (!tap_wanted("%ssoftmax from %s to %s", logarithm ? "log-" : "", allfold_type_name(x_type), allfold_type_name(y_type)))
        return;
    for (uint64_t n : sizes)
        for (int place = 0; right && place < 5; place++) {
            /* both on boundaries, in place, x or y or both not on one */
            const bool in_place = place == 1, off_x = place == 2 || place == 4, off_y = place == 3 || place == 4;
            if ((in_place && x_type != y_type) || (n > 2000 && place > 1 && (n + (uint64_t)place) % 3 != 0))
                continue;
            const struct job job = {MONOID_sumexp, x_type, n, 0, off_x ? 1 + n % (16 / x_bytes) : 0, 1 + count % 3,
                                    (enum choice)(count % DRAW_COUNT)};
            right = softmax_job(&job, logarithm, y_type, off_y ? 1 + n % (16 / y_bytes) : 0, in_place);
            if (!right)
                tap_note("n %llu, place %d, %d multiprocessors, draw %d: %s", (unsigned long long)n, place,
                         job.multiprocessors, job.draw, reason);
            count++;
        }
    tap_ok(right && count > 0, "%ssoftmax from %s to %s, %d arrays", logarithm ? "log-" : "", allfold_type_name(x_type),
           allfold_type_name(y_type), count);
}

/* The second pass of rows, each with its own constants; what lies between them stays as it is. */
static bool pass_job(const struct box &box, allfold_type type, bool logarithm, allfold_level level, int draw)
{
    const size_t bytes = allfold_type_bytes(type);
    const struct job job = {MONOID_sumexp, type, box.outer * box.outer_stride, 0, 0, 3, (enum choice)draw};
    const struct room x = input_of(&job, 0), y = room_of(type, job.n, 0), expected = room_of(type, job.n, 0);
    std::vector<struct softmax_constants> constants(box.outer);
    const enum monoid monoid = softmax_monoid(type, type, logarithm, level);
    memset(y.start, 0x5c, job.n * bytes);
    memset(expected.start, 0x5c, job.n * bytes);
    for (uint64_t r = 0; r < box.outer; r++) {
        const uint64_t at = r * box.outer_stride * bytes;
        const struct work row = {monoid, type, x.start + at, box.length, 0, NULL, NULL};
        struct partial partial;
        monoid_identity(monoid, type, &partial);
        cpu_loops_base.fold(&row, &partial);
        softmax_constants_set(monoid, &partial, &constants[r]);
        for (uint64_t i = 0; i < box.length; i++)
            softmax_put(&constants[r], logarithm, type, x.start + at, type, expected.start + at, i);
    }
    emulation_order(job.n);
    const struct softmax_work work = {x.start, y.start, type, type, box, box.outer_stride, 1, logarithm, level};
    const int code = normalise_launch(&work, constants.data(), NULL, job.multiprocessors, NULL);
    bool right = code == 0 || failed("the launch fails with %d: %s", code, emulation_fault());
    for (uint64_t i = 0; right && i < job.n; i++) {
        const double a = element_get(type, y.start, i), b = element_get(type, expected.start, i);
        const double off = level == ALLFOLD_LEVEL_FAST && bytes == 2 && !logarithm ? fabs(b) * 0x1p-7 + 0x1p-24 : 0; /* by the device's own exp2 */
        if (memcmp(y.start + i * bytes, expected.start + i * bytes, bytes) != 0 && (a == a || b == b) && !(fabs(a - b) <= off))
            right = failed("element %llu is %.17g, not %.17g", (unsigned long long)i, a, b);
    }
    free(x.block);
    free(y.block);
    free(expected.block);
    return right;
}

/* Several rows a block, one, and several blocks a row; with and without a rest behind the last vector. */
static void test_pass(allfold_type type)
{
    const uint64_t each = 16 / allfold_type_bytes(type);
    const struct box boxes[] = {{300, 9, 1, 9 / each * each + each, 1}, {67, 100 * each, 1, 101 * each, 1}, {5, 1000 * each + 1, 1, 1001 * each, 1}, {3, 1, 1, each, 1}, {2, 513 * each - 1, 1, 513 * each, 1}};
    bool right = true;
    int count = 0;
    if (!tap_wanted("second pass of rows of %s", allfold_type_name(type)))
        return;
    for (const struct box &box : boxes)
        for (int variant = 0; right && variant < 4; variant++, count++) {
            right = pass_job(box, type, variant % 2 != 0, variant < 2 ? ALLFOLD_LEVEL_FAST : ALLFOLD_LEVEL_EXACT, count % DRAW_COUNT);
            if (!right)
                tap_note("%llu x %llu, variant %d: %s", (unsigned long long)box.outer, (unsigned long long)box.length, variant, reason);
        }
    tap_ok(right, "second pass of rows of %s, %d arrays", allfold_type_name(type), count);
}

/* The host takes a result once all its words are of the launch, whichever arrives last. */
static void test_torn_result(void)
{
    const uint32_t number = 7;
    const size_t count = 18;
    struct fold_mailbox mailbox = {};
    struct partial result;
    int taken = 0, right = 0;
    for (size_t late = 0; late <= count; late++) {
        for (size_t i = 0; i < count; i++)
            mailbox.partial.words[i] = (uint64_t)(number - (i == late)) << 32 | i;
        const bool whole = fold_result(&mailbox, number, 4 * count, &result);
        taken += whole;
        for (size_t i = 0; i < count && whole; i++)
            right += result.bytes[4 * i] == i;
    }
    tap_ok(taken == 1 && right == (int)count, "a result is taken when its last word has arrived, and no sooner");
}

int main()
{
    test_torn_result();
    for (int type = ALLFOLD_TYPE_NONE + 1; type < ALLFOLD_TYPE_COUNT; type++) {
        for (int monoid = 0; monoid < (int)(sizeof monoids / sizeof *monoids); monoid++) /* weighted ones come behind: test_library.py */
            if (monoid_takes((enum monoid)monoid, (allfold_type)type) && !monoid_has_mark((enum monoid)monoid))
                test_fold((enum monoid)monoid, (allfold_type)type);
        for (allfold_type y_type : {ALLFOLD_F16, ALLFOLD_BF16, ALLFOLD_F32, ALLFOLD_F64})
            for (bool logarithm : {false, true})
                test_softmax((allfold_type)type, y_type, logarithm);
    }
    test_full_words();
    for (allfold_type type : {ALLFOLD_F16, ALLFOLD_BF16, ALLFOLD_F32, ALLFOLD_F64}) {
        for (const bool logarithm : {false, true})
            for (const allfold_level level : {ALLFOLD_LEVEL_FAST, ALLFOLD_LEVEL_EXACT}) {
                test_rows(type, logarithm, level);
                test_columns(type, logarithm, level);
            }
        test_resident(type, false, ALLFOLD_LEVEL_FAST);
        test_resident(type, false, ALLFOLD_LEVEL_EXACT);
        test_resident(type, true, ALLFOLD_LEVEL_EXACT); /* level fast has the same kernels */
        if (type != ALLFOLD_F64) {
            test_sums(type);
            test_extremes(type);
        }
        test_pass(type);
    }
    tap_ok(kernels_check() == 0, "kernels_check finds the kernels");
    const struct softmax_work to_integers = {NULL, NULL, ALLFOLD_F32, ALLFOLD_INT32, box_of_row(1), 1, 1, false, ALLFOLD_LEVEL_FAST};
    const struct softmax_constants none = {};
    tap_ok(normalise_launch(&to_integers, NULL, &none, 1, NULL) != 0,
           "softmax to an integer type is refused");
    return tap_done();
}
