/* Undoing the filters of HDF5's chunks: see chunk_filters.h. */
#include "array/formats/chunk_filters.h"

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#ifdef ALLFOLD_HAVE_LIBDEFLATE
#include <libdeflate.h>
#endif
#ifdef ALLFOLD_HAVE_ZSTD
#include <zstd.h>
#endif

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    int id;
    const char *name;
} names[] = {{CHUNK_DEFLATE, "deflate"}, {CHUNK_SHUFFLE, "shuffle"}, {CHUNK_FLETCHER32, "fletcher32"}, {4, "szip"},
             {5, "nbit"}, {6, "scaleoffset"}, {307, "bzip2"}, {32000, "lzf"}, {32001, "blosc"}, {32004, "lz4"},
             {32008, "bitshuffle"}, {32013, "zfp"}, {CHUNK_ZSTD, "zstd"}, {32017, "sz"}, {32026, "blosc2"}};

const char *chunk_filter_name(int id)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].id == id)
            return names[i].name;
    return NULL;
}

bool chunk_filter_known(int id)
{
#ifdef ALLFOLD_HAVE_LIBDEFLATE
    if (id == CHUNK_DEFLATE)
        return true;
#endif
#ifdef ALLFOLD_HAVE_ZSTD
    if (id == CHUNK_ZSTD)
        return true;
#endif
    return id == CHUNK_SHUFFLE || id == CHUNK_FLETCHER32;
}

const char *chunk_filter_advice(int id)
{
    if (chunk_filter_known(id))
        return "";
    return id == CHUNK_DEFLATE ? " (all threads undo it in a build with libdeflate-dev and --with-libdeflate)"
           : id == CHUNK_ZSTD  ? " (all threads undo it in a build with libzstd-dev and --with-zstd)"
                               : "";
}

/* Bytes on their way through a filter. */
struct step {
    const unsigned char *from;
    size_t from_bytes;
    unsigned char *to;
    size_t to_bytes; /* what the filter must give */
};

static allfold_status undo_deflate(struct chunk_decoder *decoder, const struct step *step, struct error *error)
{
#ifdef ALLFOLD_HAVE_LIBDEFLATE
    if (decoder->deflate == NULL && (decoder->deflate = libdeflate_alloc_decompressor()) == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory to decompress it");
    const enum libdeflate_result result
        = libdeflate_zlib_decompress(decoder->deflate, step->from, step->from_bytes, step->to, step->to_bytes, NULL);
    if (result == LIBDEFLATE_SUCCESS)
        return ALLFOLD_OK;
    return error_set(error, ALLFOLD_BAD_INPUT, "deflate: expected %zu bytes from %zu compressed ones, found %s", step->to_bytes,
                     step->from_bytes,
                     result == LIBDEFLATE_SHORT_OUTPUT         ? "fewer"
                     : result == LIBDEFLATE_INSUFFICIENT_SPACE ? "more"
                                                               : "damaged data");
#else
    (void)decoder, (void)step;
    return error_set(error, ALLFOLD_UNSUPPORTED, "deflate is not in this build");
#endif
}

static allfold_status undo_zstd(struct chunk_decoder *decoder, const struct step *step, struct error *error)
{
#ifdef ALLFOLD_HAVE_ZSTD
    if (decoder->zstd == NULL && (decoder->zstd = ZSTD_createDCtx()) == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory to decompress it");
    const size_t got = ZSTD_decompressDCtx(decoder->zstd, step->to, step->to_bytes, step->from, step->from_bytes);
    if (got == step->to_bytes)
        return ALLFOLD_OK;
    return error_set(error, ALLFOLD_BAD_INPUT, "zstd: expected %zu bytes from %zu compressed ones, found %s", step->to_bytes,
                     step->from_bytes, ZSTD_isError(got) ? ZSTD_getErrorName(got) : "fewer");
#else
    (void)decoder, (void)step;
    return error_set(error, ALLFOLD_UNSUPPORTED, "zstd is not in this build");
#endif
}

/* HDF5's checksum: Fletcher's, of big-endian words of 16 bits. */
static uint32_t fletcher32(const unsigned char *bytes, size_t count)
{
    uint32_t sum1 = 0, sum2 = 0;
    for (size_t words = count / 2; words > 0;) {
        const size_t run = words < 360 ? words : 360; /* so that the sums fit */
        words -= run;
        for (size_t i = 0; i < run; i++, bytes += 2) {
            sum1 += (uint32_t)bytes[0] << 8 | bytes[1];
            sum2 += sum1;
        }
        sum1 = (sum1 & 0xffff) + (sum1 >> 16);
        sum2 = (sum2 & 0xffff) + (sum2 >> 16);
    }
    if (count % 2 != 0) {
        sum1 += (uint32_t)*bytes << 8;
        sum2 += sum1;
        sum1 = (sum1 & 0xffff) + (sum1 >> 16);
        sum2 = (sum2 & 0xffff) + (sum2 >> 16);
    }
    sum1 = (sum1 & 0xffff) + (sum1 >> 16);
    sum2 = (sum2 & 0xffff) + (sum2 >> 16);
    return sum2 << 16 | sum1;
}

/* The checksum stands behind the bytes. Library versions before 1.6.3 wrote its bytes in pairs that are swapped. */
static allfold_status check_fletcher32(const struct step *step, struct error *error)
{
    const unsigned char *const stored = step->from + step->to_bytes;
    if (step->from_bytes != step->to_bytes + 4)
        return error_set(error, ALLFOLD_BAD_INPUT, "fletcher32: expected %zu bytes and a checksum, found %zu bytes", step->to_bytes,
                         step->from_bytes);
    const uint32_t found = stored[0] | (uint32_t)stored[1] << 8 | (uint32_t)stored[2] << 16 | (uint32_t)stored[3] << 24;
    const uint32_t sum = fletcher32(step->from, step->to_bytes), swapped = (sum & 0x00ff00ff) << 8 | (sum >> 8 & 0x00ff00ff);
    if (found == sum || found == swapped)
        return ALLFOLD_OK;
    return error_set(error, ALLFOLD_BAD_INPUT, "fletcher32: expected the checksum %08" PRIx32 ", found %08" PRIx32
                     ": the file is damaged", sum, found);
}

/* Byte j of element i lies at i + j * elements. A constant size makes the compiler unroll and vectorise. */
static inline __attribute__((always_inline)) void unshuffle_size(const struct step *step, size_t size)
{
    const size_t elements = step->to_bytes / size;
    const unsigned char *const from = step->from;
    unsigned char *const to = step->to;
    for (size_t i = 0; i < elements; i++)
        for (size_t j = 0; j < size; j++)
            to[i * size + j] = from[i + j * elements];
}

static allfold_status undo_shuffle(const struct step *step, size_t size, struct error *error)
{
    if (step->from_bytes != step->to_bytes)
        return error_set(error, ALLFOLD_BAD_INPUT, "shuffle: expected %zu bytes, found %zu", step->to_bytes, step->from_bytes);
    switch (size) {
    case 2: unshuffle_size(step, 2); break;
    case 4: unshuffle_size(step, 4); break;
    case 8: unshuffle_size(step, 8); break;
    default: unshuffle_size(step, size); break;
    }
    const size_t rest = step->to_bytes % size;
    memcpy(step->to + step->to_bytes - rest, step->from + step->to_bytes - rest, rest);
    return ALLFOLD_OK;
}

static allfold_status reserve_scratch(struct chunk_decoder *decoder, size_t bytes, struct error *error)
{
    if (bytes <= decoder->scratch_bytes)
        return ALLFOLD_OK;
    for (int i = 0; i < 2; i++) {
        free(decoder->scratch[i]);
        decoder->scratch[i] = malloc(bytes);
    }
    decoder->scratch_bytes = decoder->scratch[0] != NULL && decoder->scratch[1] != NULL ? bytes : 0;
    return decoder->scratch_bytes > 0 ? ALLFOLD_OK : error_set(error, ALLFOLD_NO_MEMORY, "no memory for its %zu bytes", bytes);
}

/* Undoes filter i, which is not a checksum. */
static allfold_status undo(struct chunk_decoder *decoder, const struct chunk_filters *filters, int i, struct step *step,
                           struct error *error)
{
    switch (filters->id[i]) {
    case CHUNK_DEFLATE: return undo_deflate(decoder, step, error);
    case CHUNK_ZSTD: return undo_zstd(decoder, step, error);
    case CHUNK_SHUFFLE: return undo_shuffle(step, filters->element_bytes, error);
    default: return error_set(error, ALLFOLD_UNSUPPORTED, "filter %d is not in this build", filters->id[i]);
    }
}

/* Bytes that the chunk had before filter i was applied, if no filter before it compresses. */
static size_t bytes_before(const struct chunk_filters *filters, const struct raw_chunk *chunk, int i)
{
    size_t bytes = chunk->decoded;
    for (int j = 0; j < i; j++)
        bytes += filters->id[j] == CHUNK_FLETCHER32 && (chunk->mask >> j & 1) == 0 ? 4 : 0;
    return bytes;
}

allfold_status chunk_decode(struct chunk_decoder *decoder, const struct chunk_filters *filters, const struct raw_chunk *chunk,
                            void *destination, struct error *error)
{
    struct step step = {.from = chunk->bytes, .from_bytes = chunk->count};
    int first = 0, scratch = 0; /* first: the filter that is undone last, without checksums, which leave the bytes where they are */
    while (first < filters->count && ((chunk->mask >> first & 1) != 0 || filters->id[first] == CHUNK_FLETCHER32))
        first++;
    for (int i = filters->count - 1; i >= 0 && error->status == ALLFOLD_OK; i--) {
        if ((chunk->mask >> i & 1) != 0)
            continue;
        step.to_bytes = bytes_before(filters, chunk, i);
        if (filters->id[i] == CHUNK_FLETCHER32) {
            step.to_bytes = step.from_bytes >= 4 ? step.from_bytes - 4 : 0;
            if (check_fletcher32(&step, error) == ALLFOLD_OK)
                step.from_bytes -= 4;
            continue;
        }
        const bool last = i == first && step.to_bytes == chunk->decoded;
        if (!last && reserve_scratch(decoder, chunk->decoded + 4 * CHUNK_FILTERS_MAX, error) != ALLFOLD_OK)
            return error->status;
        step.to = last ? destination : decoder->scratch[scratch];
        scratch ^= 1;
        undo(decoder, filters, i, &step, error);
        step.from = step.to;
        step.from_bytes = step.to_bytes;
    }
    if (error->status == ALLFOLD_OK && step.from_bytes != chunk->decoded)
        error_set(error, ALLFOLD_BAD_INPUT, "expected %zu bytes, found %zu", chunk->decoded, step.from_bytes);
    if (error->status == ALLFOLD_OK && step.from != destination)
        memcpy(destination, step.from, chunk->decoded);
    return error->status;
}

void chunk_decoder_close(struct chunk_decoder *decoder)
{
#ifdef ALLFOLD_HAVE_LIBDEFLATE
    if (decoder->deflate != NULL)
        libdeflate_free_decompressor(decoder->deflate);
#endif
#ifdef ALLFOLD_HAVE_ZSTD
    ZSTD_freeDCtx(decoder->zstd);
#endif
    free(decoder->scratch[0]);
    free(decoder->scratch[1]);
    memset(decoder, 0, sizeof *decoder);
}
