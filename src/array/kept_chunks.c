/* Chunks that several pieces need in part, such as where a file ends or a slice begins within a chunk, are decoded by the
   first reader that comes to them. The others wait for it, and take theirs from there. The one that was not used for the
   longest time makes room. */
#include "array/kept_chunks.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEPT_BYTES = 128 << 20,
    KEPT_MOST = 512
};

struct kept_chunk {
    uint64_t number, count; /* of the chunk; its elements */
    void *elements;         /* NULL: a reader decodes it */
    int readers;            /* that use it */
    uint64_t used;          /* when it was used last */
};

struct keeping_source {
    struct source source;
    size_t chunk_bytes;
    pthread_mutex_t lock;
    pthread_cond_t decoded;
    struct kept_chunk kept[KEPT_MOST];
    int count;
    uint64_t uses;
};

struct keeping_reader {
    struct reader reader;
    uint64_t used; /* the number of the chunk whose elements were given, and one more; 0: none */
};

/* ---- under the lock */

static struct kept_chunk *find(struct keeping_source *s, uint64_t number)
{
    for (int i = 0; i < s->count; i++)
        if (s->kept[i].number == number)
            return &s->kept[i];
    return NULL;
}

static void drop(struct keeping_source *s, struct kept_chunk *chunk)
{
    free(chunk->elements);
    *chunk = s->kept[--s->count];
}

/* A place for one more; NULL: all are in use. */
static struct kept_chunk *make_room(struct keeping_source *s)
{
    const int most = (int)u64_min(KEPT_MOST, KEPT_BYTES / s->chunk_bytes);
    struct kept_chunk *oldest = NULL;
    if (s->count < most)
        return &s->kept[s->count++];
    for (int i = 0; i < s->count; i++)
        if (s->kept[i].elements != NULL && s->kept[i].readers == 0 && (oldest == NULL || s->kept[i].used < oldest->used))
            oldest = &s->kept[i];
    if (oldest == NULL)
        return NULL;
    free(oldest->elements);
    return oldest;
}

static void let_go(struct keeping_reader *r)
{
    if (r->used > 0)
        find((struct keeping_source *)r->reader.source, r->used - 1)->readers--;
    r->used = 0;
}

/* The chunk, once it is decoded. NULL: this reader is to decode it; *place is then where it may be kept, or NULL. */
static struct kept_chunk *await(struct keeping_source *s, uint64_t number, bool *may_keep)
{
    struct kept_chunk *chunk;
    while ((chunk = find(s, number)) != NULL && chunk->elements == NULL)
        pthread_cond_wait(&s->decoded, &s->lock);
    *may_keep = false;
    if (chunk != NULL)
        return chunk;
    if ((chunk = make_room(s)) != NULL) {
        *chunk = (struct kept_chunk){.number = number};
        *may_keep = true;
    }
    return NULL;
}

/* ---- reading */

/* Keeps a copy of what was decoded, or nothing after an error or without memory. */
static void keep(struct keeping_source *s, uint64_t number, const struct piece *piece, bool decoded)
{
    const size_t bytes = (size_t)(decoded ? piece->count : 0) * allfold_type_bytes(s->source.type);
    void *const elements = decoded ? malloc(bytes + 1) : NULL;
    if (elements != NULL)
        memcpy(elements, piece->elements, bytes);
    pthread_mutex_lock(&s->lock);
    struct kept_chunk *const chunk = find(s, number);
    if (elements != NULL) {
        chunk->elements = elements;
        chunk->count = piece->count;
        chunk->used = ++s->uses;
    } else {
        drop(s, chunk);
    }
    pthread_cond_broadcast(&s->decoded);
    pthread_mutex_unlock(&s->lock);
}

static allfold_status read_kept(struct reader *reader, const struct read_request *request, struct piece *piece, struct error *error)
{
    struct keeping_reader *const r = (struct keeping_reader *)reader;
    struct keeping_source *const s = (struct keeping_source *)reader->source;
    const uint64_t number = request->range.first / s->source.granule;
    bool may_keep = false;
    if (!request->in_part && r->used == 0)
        return reader_read(reader->inner, request, piece, error);
    pthread_mutex_lock(&s->lock);
    let_go(r);
    struct kept_chunk *const chunk = request->in_part ? await(s, number, &may_keep) : NULL;
    if (chunk != NULL) {
        chunk->readers++;
        chunk->used = ++s->uses;
        r->used = number + 1;
        *piece = (struct piece){.elements = chunk->elements, .count = chunk->count};
    }
    pthread_mutex_unlock(&s->lock);
    if (chunk != NULL)
        return ALLFOLD_OK;
    reader_read(reader->inner, request, piece, error);
    if (may_keep)
        keep(s, number, piece, error->status == ALLFOLD_OK);
    return error->status;
}

static void close_reader(struct reader *reader)
{
    struct keeping_source *const s = (struct keeping_source *)reader->source;
    pthread_mutex_lock(&s->lock);
    let_go((struct keeping_reader *)reader);
    pthread_mutex_unlock(&s->lock);
}

static void close_kept(struct source *source)
{
    struct keeping_source *const s = (struct keeping_source *)source;
    while (s->count > 0)
        drop(s, s->kept);
    pthread_cond_destroy(&s->decoded);
    pthread_mutex_destroy(&s->lock);
}

allfold_status kept_chunks_open(const char *name, struct source **source, struct error *error)
{
    struct keeping_source *const s = source_around(source, sizeof *s, file_shown(name), error);
    if (s == NULL)
        return error->status;
    s->source.read = read_kept;
    s->source.reader_bytes = sizeof(struct keeping_reader);
    s->source.close_reader = close_reader;
    s->source.close = close_kept;
    s->source.granule = s->source.chunking->granule;
    s->chunk_bytes = (size_t)s->source.granule * allfold_type_bytes(s->source.type);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->decoded, NULL);
    return ALLFOLD_OK;
}
