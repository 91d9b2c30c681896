/* The kernels of order statistics on the host, beside plain loops: brackets, even bins, digits and searches, of so many elements a block that counters of 4, 8
   and 16 bits are passed on. */
#define TAP_WITHOUT_MPI
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <vector>

extern "C" {
#include "fold/order.h"
#include "tests/tap.h"
}
#include "emulation.h"
#include "kernels/kernels.h"

enum { COUNT = 330001 };
static size_t shared_bytes = 200 << 10;

struct sample {
    allfold_type type;
    std::vector<char> bytes;
    std::vector<uint64_t> keys; /* of the elements */
    std::vector<uint64_t> sorted;
};

/* Two of five elements are one number, one is another, or NaN, and two are random bits. close: of floating-point types these are from -3 to 3 in place of that,
   and but one of some hundreds of the others, too. */
static struct sample sample_of(allfold_type type, bool close)
{
    const size_t each = allfold_type_bytes(type);
    struct sample s = {type, std::vector<char>(COUNT * each), std::vector<uint64_t>(COUNT), {}};
    uint64_t state = 1;
    for (uint64_t i = 0; i < COUNT; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
        const uint64_t random = state >> 32 | state << 32, most = order_most(type), kind = (random >> 20) % 5;
        const uint64_t key = kind < 2 ? most / 2 + 3 : kind == 2 ? (i % 7 == 0 ? most : most / 2 + 9) : random & most;
        const bool is_close = close && random % 331 != 5 && kind != 1;
        const uint64_t bits = is_close ? type_real_bits(type, (double)(int64_t)state * 0x3p-63) : order_bits(type, key);
        memcpy(&s.bytes[i * each], &bits, each);
        s.keys[i] = type_kind(type) == 'b' ? bits != 0 : order_key(type, bits);
    }
    s.sorted = s.keys;
    std::sort(s.sorted.begin(), s.sorted.end());
    return s;
}

/* A third equals an edge of even bins. The others are the least element beyond some edge, or a neighbour of that, or NaN. */
static struct sample edges_of(allfold_type type, double low, double high, uint32_t bins)
{
    const size_t each = allfold_type_bytes(type);
    const struct order_space space = order_space_of(type);
    struct sample s = {type, std::vector<char>(COUNT * each), std::vector<uint64_t>(COUNT), {}};
    uint64_t state = 1;
    for (uint64_t i = 0; i < COUNT; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
        const uint32_t edge = i < COUNT / 3 ? bins / 2 : (uint32_t)(state >> 32) % (bins + 1), kind = i < COUNT / 3 ? 1 : (uint32_t)(state >> 27) % 16;
        uint64_t key = 0;
        if (!order_at_least(&space, edge < bins ? edge * ((high - low) / bins) + low : high, false, &key))
            key = space.last;
        key = kind == 15 ? space.most : kind % 3 == 0 && key > 0 ? key - 1 : kind % 3 == 2 && key < space.last ? key + 1 : key;
        const uint64_t bits = order_bits(type, key);
        memcpy(&s.bytes[i * each], &bits, each);
        s.keys[i] = type_kind(type) == 'b' ? bits != 0 : order_key(type, bits);
    }
    s.sorted = s.keys;
    std::sort(s.sorted.begin(), s.sorted.end());
    return s;
}

/* Of sorted keys, those in [low, last]. */
static uint64_t count_in(const std::vector<uint64_t> &sorted, uint64_t low, uint64_t last)
{
    return low > last ? 0 : (uint64_t)(std::upper_bound(sorted.begin(), sorted.end(), last) - std::lower_bound(sorted.begin(), sorted.end(), low));
}

static uint64_t count_of(const std::vector<uint64_t> &numbers, uint64_t number)
{
    return (uint64_t)std::count(numbers.begin(), numbers.end(), number);
}

static bool launch(struct order_work *work, const struct sample &s, std::vector<uint64_t> &counts, uint64_t *answer = NULL)
{
    static struct fold_mailbox mailbox;
    work->type = s.type;
    work->x = &s.bytes[0];
    work->n = COUNT;
    work->limit = UINT64_MAX;
    work->counts = &counts[0];
    emulation_order(COUNT + counts.size());
    const struct fold_space space = {answer != NULL ? 3 : 1, NULL, &mailbox, 1};
    work->answered = answer != NULL ? counts.size() * sizeof counts[0] : 0;
    return order_launch(work, answer, &space, shared_bytes, NULL) == 0;
}

/* Brackets from one element of the sorted array to another, one of `part` of which is inside, and the multiset that is kept. */
static bool brackets_are_right(const struct sample &s, uint32_t count, bool whole, uint64_t part)
{
    const size_t each = allfold_type_bytes(s.type);
    struct order_brackets brackets = {0, whole, {}};
    std::vector<char> keys(COUNT * each);
    std::vector<uint64_t> counts(ORDER_FIRST_COUNT + ORDER_COUNTS * ORDER_BRACKETS_MOST), kept, due;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t at = (i * 10 + 3) * COUNT / (10 * count), low = s.sorted[at], last = s.sorted[at + COUNT / (part * count)];
        if (brackets.count == 0 || low > brackets.list[brackets.count - 1].last)
            brackets.list[brackets.count++] = {low, last};
    }
    struct order_work work = {};
    work.kind = ORDER_BRACKETS;
    work.brackets = &brackets;
    work.keys = &keys[0];
    work.capacity = COUNT;
    const uint64_t nans = order_last(s.type) < order_most(s.type) ? count_in(s.sorted, order_last(s.type) + 1, order_most(s.type)) : 0;
    bool right = launch(&work, s, counts) && counts[ORDER_NANS] == nans;
    for (uint32_t b = 0; b < brackets.count && right; b++) {
        const uint64_t *const found = &counts[ORDER_FIRST_COUNT + b * ORDER_COUNTS], low = brackets.list[b].low, last = brackets.list[b].last;
        const uint64_t at_low = count_in(s.sorted, low, low), at_last = low < last ? count_in(s.sorted, last, last) : 0;
        right = found[ORDER_FROM] == count_in(s.sorted, low, order_most(s.type)) && found[ORDER_LOW] == at_low && found[ORDER_LAST] == at_last
                && found[ORDER_BETWEEN] == count_in(s.sorted, low, last) - at_low - at_last;
        for (uint64_t key : s.keys)
            if (key >= low && key <= last && (whole || (key != low && key != last)))
                due.push_back(key);
    }
    for (uint64_t i = 0; i < std::min<uint64_t>(counts[ORDER_KEPT], COUNT); i++) {
        uint64_t key = 0;
        memcpy(&key, &keys[i * each], each);
        kept.push_back(type_kind(s.type) == 'b' ? key != 0 : key);
    }
    std::sort(kept.begin(), kept.end());
    std::sort(due.begin(), due.end());
    return right && kept == due;
}

static bool digits_are_right(const struct sample &s, uint32_t count)
{
    struct order_cut cuts[ORDER_CUTS_MOST] = {};
    struct order_work work = {};
    for (uint32_t c = 0; c < count; c++) {
        struct order_cut *const cut = &cuts[work.cut_count];
        cut->low = s.sorted[(2 * c + 1) * (COUNT / (2 * count + 1))];
        cut->last = s.sorted[(2 * c + 2) * (COUNT / (2 * count + 1))];
        if (cut->low >= cut->last || (work.cut_count > 0 && cut->low <= cut[-1].last))
            continue;
        while ((cut->last - cut->low) >> cut->shift >= 100)
            cut->shift++;
        cut->digits = (uint32_t)((cut->last - cut->low) >> cut->shift) + 1;
        cut->first = work.digits;
        work.digits += cut->digits + 1;
        work.cut_count++;
    }
    std::vector<uint64_t> counts(ORDER_FIRST_COUNT + ++work.digits);
    work.kind = ORDER_DIGITS;
    work.cuts = cuts;
    bool right = work.cut_count == 0 || launch(&work, s, counts);
    for (uint32_t c = 0; c < work.cut_count; c++)
        for (uint64_t digit = 0; digit < cuts[c].digits && right; digit++) {
            const uint64_t low = cuts[c].low + (digit << cuts[c].shift), last = low + (UINT64_C(1) << cuts[c].shift) - 1;
            right = counts[ORDER_FIRST_COUNT + cuts[c].first + 1 + digit] == count_in(s.sorted, low, std::min(last, cuts[c].last));
        }
    return right;
}

/* Two keys, so far apart that 32 bits do not hold in which of a range's digits the other one would be. */
static struct sample apart_of(allfold_type type)
{
    struct sample s = {type, std::vector<char>(COUNT * allfold_type_bytes(type)), std::vector<uint64_t>(COUNT), {}};
    for (uint64_t i = 0; i < COUNT; i++)
        s.keys[i] = (i % 2 == 0 ? UINT64_C(7) << 25 : UINT64_C(1) << 57) & order_most(type);
    s.sorted = s.keys;
    std::sort(s.sorted.begin(), s.sorted.end());
    return s;
}

/* A search is among keys. */
static struct sample keys_as_elements(struct sample s)
{
    const size_t each = allfold_type_bytes(s.type);
    s.type = order_key_type(s.type);
    for (uint64_t i = 0; i < COUNT; i++)
        memcpy(&s.bytes[i * each], &s.keys[i], each);
    return s;
}

/* Some targets are the same, the range of some is known in part, and some need not be known well. Counters are 0 afterwards. */
static bool search_is_right(const struct sample &of, uint32_t count)
{
    const struct sample s = keys_as_elements(of);
    struct order_target targets[ORDER_SEARCH_MOST] = {};
    std::vector<uint64_t> counts(ORDER_SEARCH_COUNTS), answer(ORDER_SEARCH_COUNTS);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t rank = count == 1 ? COUNT / 2 : (uint64_t)(i / 2) * (COUNT - 1) / (count / 2);
        const uint64_t room = i % 3 == 0 ? 5000 : 0, middle = s.sorted[COUNT / 2], before = middle > 0 ? count_in(s.sorted, 0, middle - 1) : 0;
        targets[i] = {rank, 0, order_most(s.type), 0, COUNT, room};
        if (count > 16 && rank >= before)
            targets[i] = {rank, middle, order_most(s.type), before, COUNT - before, room};
        else if (count > 16)
            targets[i] = {rank, 0, middle - 1, 0, before, room};
    }
    struct order_work work = {};
    work.kind = ORDER_SEARCH;
    work.targets = targets;
    work.target_count = count;
    work.rounds = UINT32_MAX;
    bool right = launch(&work, s, counts, &answer[0]);
    for (uint32_t i = 0; i < count && right; i++) {
        struct order_target found;
        memcpy(&found, (const char *)&answer[0] + i * sizeof found, sizeof found);
        const uint64_t key = s.sorted[found.rank], up_to_low = found.low > 0 ? count_in(s.sorted, 0, found.low - 1) : 0;
        right = found.rank == targets[i].rank && found.low <= key && key <= found.last && found.below == up_to_low
                && found.count >= count_in(s.sorted, found.low, found.last) && !order_target_is_open(&found);
    }
    return right && count_of(counts, 0) == counts.size();
}

/* The same with another number in place of NaN and of the largest key. */
static struct sample without_largest(struct sample s)
{
    const size_t each = allfold_type_bytes(s.type);
    const uint64_t number = order_bits(s.type, order_most(s.type) / 2 + 9), last = std::min(order_last(s.type), order_most(s.type) - 1);
    for (uint64_t i = 0; i < COUNT; i++)
        if (s.keys[i] > last) {
            s.keys[i] = order_key(s.type, number);
            memcpy(&s.bytes[i * each], &number, each);
        }
    s.sorted = s.keys;
    std::sort(s.sorted.begin(), s.sorted.end());
    return s;
}

/* Numbers from -8 to 8, or a type's from 0 on, 16 neighbours alike. */
static struct sample runs_of(allfold_type type)
{
    const size_t each = allfold_type_bytes(type);
    struct sample s = {type, std::vector<char>(COUNT * each), std::vector<uint64_t>(COUNT), {}};
    uint64_t state = 1;
    for (uint64_t i = 0; i < COUNT; i++) {
        state = i % 16 == 0 ? state * UINT64_C(6364136223846793005) + 1442695040888963407 : state;
        const uint64_t bits = type_kind(type) == 'f' ? type_real_bits(type, (double)(int64_t)state * 0x1p-60) : state >> 57;
        memcpy(&s.bytes[i * each], &bits, each);
        s.keys[i] = order_key(type, bits);
    }
    s.sorted = s.keys;
    std::sort(s.sorted.begin(), s.sorted.end());
    return s;
}

/* Quantiles of data without NaN, from 0 to 1 or between. Brackets of many are so narrow that some may miss: then it is known between which keys the element is. The
   chain's memory is 0 afterwards. *spread: of the first one's sample. */
static bool chain_is_right(const struct sample &s, uint32_t count, bool whole, double *spread = NULL)
{
    const uint64_t last = order_last(s.type);
    struct order_target wanted[ORDER_SEARCH_MOST] = {};
    double q[ORDER_CHAIN_BRACKETS];
    std::vector<uint64_t> counts(sizeof(struct order_chain) / 8 + ORDER_SEARCH_COUNTS), answer(counts.size());
    std::vector<char> keys(COUNT * allfold_type_bytes(s.type));
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t rank = whole ? i * (uint64_t)(COUNT - 1) / (count - 1) : (2 * i + 1) * (uint64_t)COUNT / (2 * count);
        q[i] = (double)rank / (COUNT - 1);
        wanted[2 * i] = {rank, 0, last, 0, COUNT, 0};
        wanted[2 * i + 1] = {std::min<uint64_t>(rank + 1, COUNT - 1), 0, last, 0, COUNT, 0};
    }
    struct order_work work = {};
    work.kind = ORDER_CHAIN;
    work.sample = COUNT / 3;
    work.q = q;
    work.q_count = count;
    work.wanted_count = 2 * count;
    work.rounds = UINT32_MAX;
    work.wanted = wanted;
    work.keys = &keys[0];
    work.capacity = COUNT;
    bool right = launch(&work, s, counts, &answer[0]) && count_of(counts, 0) == counts.size();
    const struct order_chain *const chain = (const struct order_chain *)(const void *)&answer[0];
    right = right && chain->is_done && chain->counts[ORDER_NANS] == 0 && chain->sampled > 0 && chain->sampled <= work.sample;
    uint32_t known = 0;
    for (uint32_t i = 0; i < 2 * count && right; i++) {
        const uint64_t rank = wanted[i].rank;
        const bool is_kept = order_target_locate(&wanted[i], &chain->brackets, chain->counts + ORDER_FIRST_COUNT, COUNT, COUNT, last) != UINT64_MAX;
        const uint64_t low = is_kept ? chain->targets[i].low : wanted[i].low, last = is_kept ? low : wanted[i].last;
        right = low <= s.sorted[rank] && s.sorted[rank] <= last;
        known += low == last;
    }
    if (spread != NULL) /* 3 blocks look at some pieces each */
        *spread = order_sample_spread(chain->spread[0] >> 32, (uint32_t)chain->spread[0], std::min<uint64_t>(chain->sampled / (32 / allfold_type_bytes(s.type)), 3 * 512), 32 / (uint32_t)allfold_type_bytes(s.type));
    return right && known > count;
}

static bool spread_is_right(allfold_type type)
{
    const double alike = std::min(16.0, 32.0 / (double)allfold_type_bytes(type));
    double spread = 0;
    return chain_is_right(runs_of(type), 1, false, &spread) && spread > alike / 2 && spread < alike * 2;
}

/* The k largest or smallest, with their indices. If many of a sample are equal, or too large for f32, there is no pass. */
static bool top_is_right(const struct sample &s, bool smallest)
{
    enum { K = 20, ROOM = 1000 };
    const size_t each = allfold_type_bytes(s.type), words = sizeof(struct order_chain) / 8;
    const struct order_target target = {17, 0, 0, 0, 0, 25};
    std::vector<uint64_t> counts(words), answer(words + 2 * ROOM), indices(COUNT);
    std::vector<char> keys(COUNT * each);
    struct order_work work = {};
    work.kind = ORDER_CHAIN;
    work.sample = COUNT / 3;
    work.targets = &target;
    work.target_count = 1;
    work.smallest = smallest;
    work.ties.low = 1;
    work.keys = &keys[0];
    work.indices = &indices[0];
    work.capacity = COUNT;
    work.answer_room = ROOM;
    bool right = launch(&work, s, counts, &answer[0]) && count_of(counts, 0) == counts.size();
    const struct order_chain *const chain = (const struct order_chain *)(const void *)&answer[0];
    const uint64_t kept = chain->counts[ORDER_KEPT], low = chain->brackets.list->low, last = chain->brackets.list->last;
    if (!chain->is_done)
        return right && (each < 4 || s.type == ALLFOLD_F64);
    right = right && kept >= K && kept <= ROOM && kept == count_in(s.sorted, low, last) && (smallest ? low == 0 : last == order_most(s.type));
    for (uint64_t i = 0; i < kept && right; i++) {
        uint64_t key = 0;
        memcpy(&key, (const char *)(&answer[0] + words + ROOM) + i * each, each);
        right = key >= low && key <= last && key == s.keys[answer[words + i]];
    }
    return right;
}

static bool bins_are_right(const struct sample &s, double low, double high, uint32_t bins)
{
    const struct order_space space = order_space_of(s.type);
    struct order_even even;
    struct order_work work = {};
    std::vector<uint64_t> left(ORDER_FIRST_COUNT + bins + 4), counts(left.size());
    uint64_t before = 0, key = 0;
    work.kind = ORDER_EVEN;
    work.even = &even;
    work.short_counts = bins > 1000;
    bool right = order_even_of(low, high, bins, &even) && launch(&work, s, left, &counts[0]) && count_of(left, 0) == left.size();
    for (uint32_t i = (uint32_t)counts.size(); work.short_counts && i-- > 0;)
        counts[i] = ((const uint32_t *)&counts[0])[i];
    for (uint32_t i = 0; i <= bins + 1 && right; i++) { /* how many are below edge i; behind the last edge, how many are numbers */
        const double edge = i < bins ? i * ((high - low) / bins) + low : high;
        const bool exists = i <= bins && order_at_least(&space, edge, i == bins, &key);
        const uint64_t below = exists ? (uint64_t)(std::lower_bound(s.sorted.begin(), s.sorted.end(), key) - s.sorted.begin()) : count_in(s.sorted, 0, space.last);
        right = counts[ORDER_FIRST_COUNT + i] == below - before;
        before = below;
    }
    return right && counts[ORDER_FIRST_COUNT + bins + 2] == COUNT - before;
}

static bool edges_are_right(allfold_type type, double low, double high, uint32_t bins) { return bins_are_right(edges_of(type, low, high, bins), low, high, bins); }

int main()
{
    for (int number = ALLFOLD_TYPE_NONE + 1; number < ALLFOLD_TYPE_COUNT; number++) {
        const allfold_type type = (allfold_type)number;
        if (!tap_wanted("order statistics of %s", allfold_type_name(type)))
            continue;
        const struct sample s = sample_of(type, false), close = sample_of(type, true);
        const bool few = brackets_are_right(s, 1, false, 100) && brackets_are_right(s, 6, true, 100);
        const bool by_value = type_kind(type) != 'f'
                              || (brackets_are_right(close, 1, true, 50) && brackets_are_right(close, 7, false, 50) && brackets_are_right(close, 7, true, 5)
                                  && brackets_are_right(close, 8, true, 50) && brackets_are_right(close, 24, false, 50));
        const bool brackets = few && by_value && brackets_are_right(s, 1, false, 3) && brackets_are_right(s, 1, true, 3) && brackets_are_right(s, 6, false, 3)
                              && brackets_are_right(s, 24, true, 3);
        const auto search = [&](uint32_t count) { return type == ALLFOLD_BOOL /* of which bytes are kept */ || search_is_right(s, count); };
        const bool searches = search(1) && search(14) && search(32) && (type == ALLFOLD_BOOL || search_is_right(apart_of(type), 2));
        const bool digits = digits_are_right(s, 1) && digits_are_right(s, 9) && searches;
        const bool edges = edges_are_right(type, -8, 8, 256) && edges_are_right(type, -8, 8, 1 << 16) && edges_are_right(type, 4000, 4016.5, 999)
                           && edges_are_right(type, -0x1p62, 0x1p62, 3000);
        shared_bytes /= 2; /* even bins then take several passes */
        const bool passes = edges_are_right(type, -70, 70.1, 65521);
        shared_bytes *= 2;
        const bool bins = edges && passes && bins_are_right(s, -128, 128, 256) && bins_are_right(s, -1.5, 70, 65) && bins_are_right(s, -200, 200, 1 << 16)
                          && bins_are_right(s, -4, 4, 1 << 16);
        const struct sample clean = without_largest(type_kind(type) == 'f' ? close : s);
        const auto chain = [&](uint32_t count) { return type == ALLFOLD_BOOL || chain_is_right(clean, count, false); };
        const bool extremes = type == ALLFOLD_BOOL || (spread_is_right(type) && chain_is_right(runs_of(type), 5, true) && top_is_right(clean, false) && top_is_right(clean, true));
        const bool chains = chain(1) && chain(7) && chain(16) && extremes;
        emulation_refuse_together(true);
        const bool refused = search(9) && chain(2);
        emulation_refuse_together(false);
        tap_ok(brackets && digits && bins && chains && refused, "order statistics of %s%s%s%s%s%s", allfold_type_name(type), brackets ? "" : ": brackets",
               digits ? "" : ": digits", bins ? "" : ": bins", chains ? "" : ": chains", refused ? "" : ": blocks that may not wait for each other");
    }
    return tap_done();
}
