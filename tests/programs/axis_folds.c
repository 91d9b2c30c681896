/* Folds and softmax along axes of arrays in a file: the program behind test_axes.py. Run under MPI: axis_folds BACKEND CASES DATA
   OUT. Each line of CASES is a call: numbers in the order of struct axis_case. DATA holds the global arrays, of which each rank
   takes a sub-box with the strides of the whole. Rank 0 prints a line for each call, its status and message, and writes the results
   of those without error to OUT. A difference between ranks, between host and device memory, or between all results and a rank's
   own, ends the program. With ALLFOLD_TEST_EXCHANGE in the environment MPI exchanges everything. */
#include "tests/support.h"

#include <inttypes.h>
#include <stdio.h>

enum { RANK_MOST = 5 };
struct axis_case {
    uint64_t softmax, fold, type, to, outer, length, inner, outer_stride, axis_stride, cut, split, nan, ddof, logarithm, fast, memory,
        at, elements; /* to: result type, or that of y; at: byte in DATA */
    uint64_t small; /* pieces of 600 bytes */
    uint64_t rank, axes, begin, shape[RANK_MOST], strides[RANK_MOST]; /* not 0: an allfold_view_nd, of outer results; begin: its first element */
    uint64_t weights_type, weights_at, weights_count, weights_strides[RANK_MOST]; /* no type: there are none */
};
enum { FIELDS = sizeof(struct axis_case) / sizeof(uint64_t) };

static FILE *out;

/* This rank's part of a call. */
struct part {
    allfold_view view;
    allfold_view_nd nd;
    uint64_t shape[RANK_MOST];
    struct range cut; /* of the cut dimension */
    uint64_t at;      /* element of the array with which the part begins */
};

static bool is_folded(const struct axis_case *c, uint64_t dimension) { return (c->axes >> dimension & 1) != 0; }

static void part_of_nd(const struct axis_case *c, const char *data, size_t bytes, struct part *part)
{
    part->cut = split_part((enum split)c->split, c->shape[c->cut], world_rank(), world_size());
    part->at = c->begin + part->cut.first * c->strides[c->cut];
    memcpy(part->shape, c->shape, sizeof part->shape);
    part->shape[c->cut] = part->cut.count;
    part->nd = (allfold_view_nd)ALLFOLD_VIEW_ND_INIT;
    part->nd.data = data + (part->cut.count > 0 ? part->at : 0) * bytes;
    part->nd.rank = (int)c->rank;
    part->nd.shape = part->shape;
    part->nd.strides = (const int64_t *)c->strides;
    part->nd.axes = c->axes;
    part->nd.cut = (int)c->cut;
    part->nd.type = (allfold_type)c->type;
}

static void *zeroed(size_t bytes)
{
    void *const memory = calloc(bytes + 64, 1);
    must(memory != NULL, "memory");
    return memory;
}

/* The weights of the part. */
static void *weights_of(const struct axis_case *c, FILE *data, struct part *part)
{
    const size_t bytes = allfold_type_bytes((allfold_type)c->weights_type), all = c->weights_count * bytes;
    char *const weights = zeroed(all);
    fseek(data, (long)c->weights_at, SEEK_SET);
    must(fread(weights, 1, all, data) == all, "the weights are short");
    part->nd.weights = weights + (part->cut.count > 0 ? part->cut.first * c->weights_strides[c->cut] * bytes : 0);
    part->nd.weights_strides = (const int64_t *)c->weights_strides;
    part->nd.weights_type = (allfold_type)c->weights_type;
    return weights;
}

static struct part part_of(const struct axis_case *c, const char *data, size_t bytes)
{
    const uint64_t extents[] = {c->outer, c->length, c->inner}, strides[] = {c->outer_stride, c->axis_stride, 1};
    struct part part = {.cut = split_part((enum split)c->split, extents[c->cut], world_rank(), world_size())};
    part.at = part.cut.first * strides[c->cut];
    part.view = (allfold_view){data + (part.cut.count > 0 ? part.at : 0) * bytes, c->outer, c->length, c->inner, c->outer_stride,
                               c->axis_stride, (allfold_type)c->type, (allfold_cut)c->cut};
    *(c->cut == ALLFOLD_CUT_OUTER ? &part.view.outer : c->cut == ALLFOLD_CUT_AXIS ? &part.view.length : &part.view.inner)
        = part.cut.count;
    return part;
}

/* Whether the ranks have parts of the same rows. */
static bool cuts_rows(const struct axis_case *c) { return c->rank > 0 ? is_folded(c, c->cut) : c->cut == ALLFOLD_CUT_AXIS; }

static uint64_t place_of_nd(const struct axis_case *c, const struct part *part, uint64_t r)
{
    uint64_t place = 0, below = 1;
    for (uint64_t d = c->rank; d-- > 0;) {
        if (is_folded(c, d))
            continue;
        place += (r % part->shape[d] + (d == c->cut ? part->cut.first : 0)) * below;
        r /= part->shape[d];
        below *= c->shape[d];
    }
    return place;
}

/* The place among all results of this rank's own result number r. */
static uint64_t place_of(const struct axis_case *c, const struct part *part, uint64_t r)
{
    if (c->rank > 0 && !cuts_rows(c))
        return place_of_nd(c, part, r);
    if (cuts_rows(c))
        return range_part(c->outer * c->inner, (uint64_t)world_rank(), (uint64_t)world_size()).first + r;
    if (c->cut == ALLFOLD_CUT_OUTER)
        return part->cut.first * c->inner + r;
    if (c->cut == ALLFOLD_CUT_INNER)
        return r / part->cut.count * c->inner + part->cut.first + r % part->cut.count;
    return 0;
}

static uint64_t own_count(const struct axis_case *c, const struct part *part)
{
    uint64_t count = 1;
    for (uint64_t d = 0; d < c->rank; d++)
        count *= is_folded(c, d) ? 1 : part->shape[d];
    return cuts_rows(c) ? range_part(c->outer * c->inner, (uint64_t)world_rank(), (uint64_t)world_size()).count
           : c->rank > 0 ? count : part->view.outer * part->view.inner;
}

static void same_on_all(const void *memory, size_t bytes)
{
    void *const first = zeroed(bytes);
    memcpy(first, memory, bytes);
    MPI_Bcast(first, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    must(memcmp(first, memory, bytes) == 0, "the ranks have different results");
    free(first);
}

struct arrays {
    void *values[FOLD_RESULTS_MAX];
    int64_t *indices[FOLD_RESULTS_MAX];
};

static bool has_indices(const struct axis_case *c, size_t i)
{
    return c->fold == ALLFOLD_ARGMIN || c->fold == ALLFOLD_ARGMAX || (c->fold == ALLFOLD_STATS && (i == 5 || i == 6));
}

/* One call. Results go to arrays of `count` elements; on_device: through device memory. */
static allfold_status reduce_once(allfold_context *ctx, const struct axis_case *c, const struct part *part, bool own,
                                  struct arrays *arrays, uint64_t count)
{
    const allfold_fold fold = (allfold_fold)c->fold;
    const bool on_device = c->memory == MEMORY_DEVICE;
    allfold_call call = ALLFOLD_CALL_INIT;
    allfold_output outputs[FOLD_RESULTS_MAX];
    call.nan = (allfold_nan)c->nan;
    call.result_type = (allfold_type)c->to;
    call.ddof = c->ddof;
    call.own_results = own;
    const size_t results = allfold_result_count(fold);
    for (size_t i = 0; i < results; i++) {
        arrays->values[i] = zeroed(count * 8);
        arrays->indices[i] = has_indices(c, i) ? zeroed(count * 8) : NULL;
        outputs[i] = (allfold_output){arrays->values[i], arrays->indices[i]};
        if (on_device)
            outputs[i].values = device_block(ctx, count * 8, 8);
    }
    const allfold_outputs wanted = {outputs, results};
    const allfold_status status = c->rank > 0 ? allfold_reduce_nd(ctx, fold, &part->nd, &call, &wanted)
                                              : allfold_reduce_axis(ctx, fold, &part->view, &call, &wanted);
    for (size_t i = 0; i < results && on_device; i++) {
        const allfold_type type = allfold_result_type(fold, i, (allfold_type)c->type, call.result_type);
        if (status == ALLFOLD_OK)
            device_read(ctx, arrays->values[i], outputs[i].values, count * allfold_type_bytes(type));
        device_block_free(ctx, outputs[i].values, 8);
    }
    return status;
}

static void arrays_free(struct arrays *arrays, size_t results)
{
    for (size_t i = 0; i < results; i++) {
        free(arrays->values[i]);
        free(arrays->indices[i]);
    }
}

static void compare_own(const struct axis_case *c, const struct part *part, const struct arrays *all, const struct arrays *own)
{
    for (size_t i = 0; i < allfold_result_count((allfold_fold)c->fold); i++) {
        const size_t bytes
            = allfold_type_bytes(allfold_result_type((allfold_fold)c->fold, i, (allfold_type)c->type, (allfold_type)c->to));
        for (uint64_t r = 0; r < own_count(c, part); r++) {
            const uint64_t place = place_of(c, part, r);
            must(memcmp((char *)all->values[i] + place * bytes, (char *)own->values[i] + r * bytes, bytes) == 0,
                 "a rank's own results are not those of all");
            must(all->indices[i] == NULL || all->indices[i][place] == own->indices[i][r], "nor are the indices");
        }
    }
}

static void do_reduce(allfold_context *ctx, const struct axis_case *c, const struct part *part)
{
    const allfold_fold fold = (allfold_fold)c->fold;
    const uint64_t count = c->outer * c->inner;
    struct arrays all, own;
    char message[512];
    const allfold_status status = reduce_once(ctx, c, part, false, &all, count);
    if (world_rank() == 0)
        printf("%d %s\n", (int)status, status == ALLFOLD_OK ? "" : allfold_message(ctx));
    snprintf(message, sizeof message, "%s", status == ALLFOLD_OK ? "" : allfold_message(ctx));
    must(reduce_once(ctx, c, part, true, &own, own_count(c, part)) == status, "own results have another status");
    const char *const place = strstr(message, "result [");
    must(place == NULL || strstr(allfold_message(ctx), place) != NULL, "own results have another place in the message");
    for (size_t i = 0; i < allfold_result_count(fold) && status == ALLFOLD_OK; i++) {
        const size_t bytes = allfold_type_bytes(allfold_result_type(fold, i, (allfold_type)c->type, (allfold_type)c->to));
        same_on_all(all.values[i], count * bytes);
        if (world_rank() == 0)
            fwrite(all.values[i], bytes, count, out);
        if (all.indices[i] != NULL) {
            same_on_all(all.indices[i], count * 8);
            if (world_rank() == 0)
                fwrite(all.indices[i], 8, count, out);
        }
    }
    if (status == ALLFOLD_OK)
        compare_own(c, part, &all, &own);
    arrays_free(&all, allfold_result_count(fold));
    arrays_free(&own, allfold_result_count(fold));
}

/* y of the whole array: what a rank does not write stays 0, so that the ranks' arrays can be put together. */
static void do_softmax(allfold_context *ctx, const struct axis_case *c, const struct part *part)
{
    const size_t bytes = allfold_type_bytes((allfold_type)c->to), all = c->elements * bytes;
    const bool on_device = c->memory == MEMORY_DEVICE || c->memory == MEMORY_PINNED; /* pinned: x in host memory, y not */
    unsigned char *const y = zeroed(all), *const gathered = zeroed(all), *device = NULL;
    allfold_call call = ALLFOLD_CALL_INIT;
    call.logarithm = (int)c->logarithm;
    if (on_device) {
        device = device_block(ctx, all, bytes);
        device_write(ctx, device, y, all);
    }
    const uint64_t at = part->cut.count > 0 ? part->at : 0;
    unsigned char *const to = (on_device ? device : y) + at * bytes;
    const allfold_status status = c->rank > 0 ? allfold_softmax_nd(ctx, &part->nd, to, (allfold_type)c->to, &call)
                                              : allfold_softmax_axis(ctx, &part->view, to, (allfold_type)c->to, &call);
    if (world_rank() == 0)
        printf("%d %s\n", (int)status, status == ALLFOLD_OK ? "" : allfold_message(ctx));
    if (on_device) {
        device_read(ctx, y, device, all);
        device_block_free(ctx, device, bytes);
    }
    MPI_Reduce(y, gathered, (int)all, MPI_UNSIGNED_CHAR, MPI_BOR, 0, MPI_COMM_WORLD);
    if (world_rank() == 0 && status == ALLFOLD_OK)
        fwrite(gathered, 1, all, out);
    free(y);
    free(gathered);
}

static bool read_case(FILE *file, struct axis_case *c)
{
    uint64_t *const fields = (uint64_t *)c;
    for (int i = 0; i < FIELDS; i++)
        if (fscanf(file, "%" SCNu64, &fields[i]) != 1)
            return false;
    if (c->memory == MEMORY_COUNT) /* the ranks have it in different places */
        c->memory = world_rank() % 2 == 0 ? MEMORY_HOST : MEMORY_DEVICE;
    return true;
}

static void do_case(allfold_context *ctx, const struct axis_case *c, FILE *data)
{
    const size_t bytes = allfold_type_bytes((allfold_type)c->type), all = c->elements * bytes;
    char *const host = zeroed(all), *device = NULL;
    fseek(data, (long)c->at, SEEK_SET);
    must(fread(host, 1, all, data) == all, "the data is short");
    if (c->memory == MEMORY_DEVICE) {
        device = device_block(ctx, all, bytes);
        device_write(ctx, device, host, all);
    }
    struct part part;
    if (c->rank > 0)
        part_of_nd(c, device != NULL ? device : host, bytes, &part);
    else
        part = part_of(c, device != NULL ? device : host, bytes);
    void *const weights = c->weights_type != ALLFOLD_TYPE_NONE ? weights_of(c, data, &part) : NULL;
    if (c->softmax)
        do_softmax(ctx, c, &part);
    else
        do_reduce(ctx, c, &part);
    if (device != NULL)
        device_block_free(ctx, device, bytes);
    free(weights);
    free(host);
}

int main(int argc, char **argv)
{
    allfold_options options = ALLFOLD_OPTIONS_INIT;
    struct axis_case c;
    must(argc == 5, "axis_folds BACKEND CASES DATA OUT");
    MPI_Init(NULL, NULL);
    options.threads = 2;
    if (getenv("ALLFOLD_TEST_EXCHANGE") != NULL)
        options.exchange = ALLFOLD_EXCHANGE_MPI;
    allfold_context *contexts[4]; /* of both levels, with pieces of the usual size and short ones */
    for (int i = 0; i < 4; i++) {
        options.level = i % 2 == 0 ? ALLFOLD_LEVEL_EXACT : ALLFOLD_LEVEL_FAST;
        options.staging_bytes = i < 2 ? 0 : 600;
        contexts[i] = open_or_skip(argv[1], options);
    }
    FILE *const cases = fopen(argv[2], "r"), *const data = fopen(argv[3], "rb");
    out = world_rank() == 0 ? fopen(argv[4], "wb") : NULL;
    must(cases != NULL && data != NULL && (out != NULL || world_rank() != 0), "the files");
    while (read_case(cases, &c))
        do_case(contexts[2 * c.small + c.fast], &c, data);
    fclose(cases);
    fclose(data);
    if (out != NULL)
        fclose(out);
    for (int i = 0; i < 4; i++)
        allfold_close(contexts[i]);
    MPI_Finalize();
    return 0;
}
