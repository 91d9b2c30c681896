/* The ladder's kernels on the host: every rung that is a kernel, for both folds, all types and block sizes, at lengths
   around all that it cuts by, level by level as levels.cu launches it; and the softmax rungs. Each in several orders of
   threads and blocks: no bit may change. Memory is allocated to the byte, for AddressSanitizer, and filled with what no
   sum survives. */
#define TAP_WITHOUT_MPI
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <set>

extern "C" {
#include "base/base.h"
#include "kernels/ladder/oracle.h"
#include "tests/tap.h"
}
#include "emulation.h"
#include "measure/numbers.h"
#include "kernels/ladder/rung.cuh"
#include "kernels/ladder/softmax.h"

#define ROW(NAME, ...) extern const struct rung rung_##NAME;
LADDER_CLASSIC_RUNGS(ROW)
#undef ROW
#define ROW(NAME, ...) extern const struct softmax_rung softmax_##NAME;
LADDER_CLASSIC_SOFTMAX_RUNGS(ROW)
#undef ROW

static const allfold_type types[RUNG_TYPES] = {ALLFOLD_INT32, ALLFOLD_F32, ALLFOLD_F64};
static const allfold_fold folds[RUNG_FOLDS] = {ALLFOLD_SUM, ALLFOLD_MAX};
static const int blocks[RUNG_BLOCKS] = {64, 128, 256, 512, 1024};
enum { WAVE = 3 }; /* blocks that the GPU holds at one time, for rungs that ask */

static char reason[300]; /* why the last job failed; "" if it did not */

static void *room_of(uint64_t bytes)
{
    void *const room = malloc(bytes);
    if (room == NULL)
        abort();
    memset(room, 0x7f, bytes);
    return room;
}

static void *elements_of(allfold_type type, uint64_t n, double scale)
{
    void *const x = room_of(n * allfold_type_bytes(type));
    const uint64_t peak = n > 0 ? numbers_peak(n) : 0;
    for (uint64_t i = 0; i < n; i++)
        switch (type) {
#define CASE(ID, T, bits)                                                                                              \
    case ALLFOLD_##ID:                                                                                                 \
        ((T *)x)[i] =                                                                                                  \
            (T)((double)numbers_at(i, peak, bits) * numbers_unit(bits, ALLFOLD_##ID != ALLFOLD_INT32) * scale);      \
        break;
            LADDER_TYPES(CASE)
#undef CASE
        default:
            abort();
        }
    return x;
}

/* All levels; the result, one element, is the caller's to free. */
static void *reduce(const struct rung *rung, int fold, int type, int block, const void *x, uint64_t n,
                    double *roundings)
{
    const size_t bytes = allfold_type_bytes(types[type]);
    void *const work = (rung->flags & RUNG_IN_GLOBAL) != 0 ? room_of(n * bytes) : NULL;
    void *from = NULL;
    *roundings = 0.0;
    do {
        const unsigned int count = rung_level_blocks(rung, n, blocks[block], WAVE);
        void *const to = room_of(count * bytes);
        const struct level level = {from != NULL ? from : x, n, to, work, count, blocks[block], NULL};
        const int code = rung->variants[fold][type][block].start(&level);
        if (code != 0 && reason[0] == '\0')
            snprintf(reason, sizeof reason, "the launch fails with %d: %.200s", code, emulation_fault());
        *roundings += (double)(n / (count * (uint64_t)blocks[block]) + 1) + 11.0;
        free(from);
        from = to;
        n = count;
    } while (n > 1);
    free(work);
    return from;
}

static struct ladder_answer answer_of(int type, const void *value, double roundings)
{
    struct ladder_answer answer = {{}, true, roundings, types[type] == ALLFOLD_F32 ? 24 : 53};
    answer.value.kind = types[type] == ALLFOLD_INT32 ? ALLFOLD_VALUE_I64 : ALLFOLD_VALUE_F64;
    if (types[type] == ALLFOLD_INT32)
        answer.value.i64 = *(const int32_t *)value;
    else
        answer.value.f64 = types[type] == ALLFOLD_F32 ? (double)*(const float *)value : *(const double *)value;
    return answer;
}

static bool rung_right(const struct rung *rung, int fold, int type, int block, uint64_t n)
{
    const size_t bytes = allfold_type_bytes(types[type]);
    void *const x = elements_of(types[type], n, 1.0), *const copy = elements_of(types[type], n, 1.0);
    struct ladder_oracle oracle;
    void *first = NULL;
    reason[0] = '\0';
    ladder_oracle_compute(types[type], n, &oracle);
    for (uint64_t order : {(uint64_t)0, n + 1, n + 2}) {
        double roundings;
        emulation_order(order);
        void *const result = reduce(rung, fold, type, block, x, n, &roundings);
        const struct ladder_answer answer = answer_of(type, result, roundings);
        if (reason[0] == '\0')
            ladder_oracle_differs(&oracle, folds[fold], &answer, reason, sizeof reason);
        if (reason[0] == '\0' && first != NULL && memcmp(first, result, bytes) != 0)
            snprintf(reason, sizeof reason, "other bits in another order of threads");
        free(first);
        first = result;
    }
    if (reason[0] == '\0' && memcmp(x, copy, n * bytes) != 0)
        snprintf(reason, sizeof reason, "the input was altered");
    free(first);
    free(copy);
    free(x);
    return reason[0] == '\0';
}

/* int32 sums, which forgive nothing, at all of the lengths; the other folds and types share the code. */
static std::set<uint64_t> lengths_of(const struct rung *rung, uint64_t block, bool all)
{
    const uint64_t each = block * (uint64_t)rung->elements;
    if (!all)
        return {0, 1, 2, block - 1, each + 1, 2 * each + block / 2 + 5};
    std::set<uint64_t> lengths = {0, 1, 2, 3, 31, 32, 33, 63, 64, 65};
    for (uint64_t n : {block / 2, block, 2 * block, 3 * block, 4 * block, each, 4 * block * WAVE})
        lengths.insert({n - 1, n, n + 1});
    lengths.insert({3 * each + 7, 4 * block * WAVE + 5 * block + 3, 8 * block * WAVE + 1});
    if (block == 64) /* a third level */
        lengths.insert({each * 64 + 1});
    return lengths;
}

static void test_rung(const char *name, const struct rung *rung)
{
    int count = 0, wrong = 0;
    if (!tap_wanted("%s", name))
        return;
    for (int fold = 0; fold < RUNG_FOLDS; fold++)
        for (int type = 0; type < RUNG_TYPES; type++)
            for (int block = 0; block < RUNG_BLOCKS; block++)
                for (uint64_t n : lengths_of(rung, (uint64_t)blocks[block], fold == 0 && type == 0)) {
                    count++;
                    if (!rung_right(rung, fold, type, block, n) && wrong++ == 0)
                        tap_note("%s of %llu %s, blocks of %d: %s", allfold_fold_name(folds[fold]),
                                 (unsigned long long)n, allfold_type_name(types[type]), blocks[block], reason);
                }
    tap_ok(count > 0 && wrong == 0, "%s, %d reductions", name, count);
}

static bool softmax_right(const struct softmax_rung *rung, uint64_t n)
{
    struct softmax_job job = {};
    float *const x = (float *)elements_of(ALLFOLD_F32, n, LADDER_LOGITS);
    float *const copy = (float *)elements_of(ALLFOLD_F32, n, LADDER_LOGITS);
    struct ladder_logits logits;
    char why[TABLE_TEXT_BYTES] = "";
    double worst;
    ladder_oracle_logits(n, &logits);
    job.x = x;
    job.n = n;
    job.blocks = WAVE;
    job.partials = (float *)room_of(2 * WAVE * sizeof(float));
    job.result = (float *)room_of(2 * sizeof(float));
    reason[0] = '\0';
    for (uint64_t order : {(uint64_t)0, n + 1}) {
        job.y = (float *)room_of(n * sizeof(float));
        emulation_order(order);
        const int code = rung->start(&job, NULL);
        const struct ladder_allowed allowed = {rung->allowed + rung->allowed_each * (double)(n / SOFTMAX_BLOCK + 1),
                                               rung->allowed_below};
        ladder_oracle_softmax(&logits, job.y, &allowed, &worst, why);
        if (code != 0)
            snprintf(reason, sizeof reason, "the launch fails with %d: %.200s", code, emulation_fault());
        else if (why[0] != '\0')
            snprintf(reason, sizeof reason, "%s", why);
        free(job.y);
    }
    if (reason[0] == '\0' && memcmp(x, copy, n * sizeof *x) != 0)
        snprintf(reason, sizeof reason, "the input was altered");
    free(job.partials);
    free(job.result);
    free(copy);
    free(x);
    return reason[0] == '\0';
}

static void test_softmax(const char *name, const struct softmax_rung *rung)
{
    const uint64_t block = SOFTMAX_BLOCK;
    int count = 0, wrong = 0;
    if (!tap_wanted("softmax, %s", name))
        return;
    for (uint64_t n : std::set<uint64_t>{1, 2, 31, 32, 33, block - 1, block, block + 1, 4 * block, 4 * block * WAVE + 1,
                                         5 * block * WAVE + 77}) {
        count++;
        if (!softmax_right(rung, n) && wrong++ == 0)
            tap_note("%llu logits: %s", (unsigned long long)n, reason);
    }
    tap_ok(count > 0 && wrong == 0, "softmax, %s, %d arrays", name, count);
}

int main()
{
#define ROW(NAME, ...) test_rung(#NAME, &rung_##NAME);
    LADDER_CLASSIC_RUNGS(ROW)
#undef ROW
#define ROW(NAME, ...) test_softmax(#NAME, &softmax_##NAME);
    LADDER_CLASSIC_SOFTMAX_RUNGS(ROW)
#undef ROW
    return tap_done();
}
