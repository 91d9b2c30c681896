/* Reads partials of version 2: see partial_version_2.h. At level exact its sums of integers were words, as those of floating-point numbers are
   (fold/exact.h), of which the first was worth 1. At level fast its stats of integers ended with a mean and squared deviations. */
#include "store/partial_version_2.h"

#include "fold/folds.h"

/* The layouts, which are those of all integer types. */
enum { SUM_WORDS = 7 + EXACT_COUNTS, SQUARES_WORDS = 9 + EXACT_COUNTS };
struct exact_stats {
    int64_t sum[SUM_WORDS], norm1[SUM_WORDS], norm2[SQUARES_WORDS];
    argmin_i64 min;
    argmax_i64 max;
};
struct fast_stats {
    stats_i64 kept;
    double count, mean, m2;
    int64_t origin;
};

/* Limbs are 32 bits apart, and the last has the sign. */
static wide wide_of(const int64_t *words)
{
    const int128 low = (int128)words[1] * ((int128)1 << 32) + words[0];
    uint128 high = (uint128)(low >> 64);
    for (int i = 2; i < 6; i++)
        high += (uint128)words[i] << 32 * (i - 2);
    return (wide){(int128)high, (uint64_t)low};
}

static int128 integer_of(const int64_t *words)
{
    const wide sum = wide_of(words);
    return (int128)((uint128)sum.high << 64 | sum.low);
}

static void take_stats(struct partial *partial)
{
    struct exact_stats words;
    memcpy(&words, partial->bytes, sizeof words);
    const stats_i64 stats = {.min = words.min, .max = words.max, .sum = {integer_of(words.sum)}, .norm1 = {integer_of(words.norm1)},
                             .norm2 = wide_of(words.norm2)};
    memcpy(partial->bytes, &stats, sizeof stats);
}

static void take_sum(struct partial *partial)
{
    const int128 sum = integer_of((const int64_t *)(const void *)partial->bytes);
    memcpy(partial->bytes, &sum, sizeof sum);
}

static void take_squares(struct partial *partial)
{
    const wide squares = wide_of((const int64_t *)(const void *)partial->bytes);
    memcpy(partial->bytes, &squares, sizeof squares);
}

static void keep(struct partial *partial) { (void)partial; }

bool partial_from_version_2(struct total *total, uint64_t bytes)
{
    const size_t now = monoid_bytes(fold_monoid(total->fold, total->level, total->type), total->type);
    const bool words = type_kind(total->type) != 'f' && total->level == ALLFOLD_LEVEL_EXACT;
    const bool is_stats = type_kind(total->type) != 'f' && fold_has_variance(total->fold);
    size_t then = now;
    void (*take)(struct partial *) = keep;
    if (is_stats) {
        then = words ? sizeof(struct exact_stats) : sizeof(struct fast_stats);
        take = words ? take_stats : keep;
    } else if (words && (total->fold == ALLFOLD_SUM || total->fold == ALLFOLD_MEAN || total->fold == ALLFOLD_NORM1)) {
        then = sizeof(int64_t) * SUM_WORDS;
        take = take_sum;
    } else if (words && total->fold == ALLFOLD_NORM2) {
        then = sizeof(int64_t) * SQUARES_WORDS;
        take = take_squares;
    }
    if (bytes != then)
        return false;
    take(&total->partial);
    memset(total->partial.bytes + now, 0, sizeof total->partial.bytes - now);
    return true;
}
