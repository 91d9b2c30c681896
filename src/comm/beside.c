/* Combines partials through the ranks' shared memory, without MPI: beside.h. In each round all ranks give a message and take those of all,
   in rank order. */
#include "comm/beside.h"

#include "comm/handle.h"
#include "comm/in_host.h"

#include <stdlib.h>
#include <string.h>

/* What a rank gives. Its error, or its part. */
struct beside_message {
    struct error error;
    uint64_t call, count;
    enum monoid monoid;
    allfold_type type;
    struct partial partial;
};

struct comm_beside {
    struct in_host in_host;
    char host[64], device[32]; /* for messages */
};

allfold_status comm_beside_open(struct comm *comm, struct comm_beside **beside, struct error *error)
{
    struct comm_beside *const opened = calloc(1, sizeof *opened);
    if (opened == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for an exchange");
    else if (comm->hosts > 1)
        error_set(error, ALLFOLD_UNSUPPORTED, "values in device memory need ranks that share memory: expected one host, exchange auto and at "
                  "most %d ranks; found ranks that MPI combines as %d hosts", IN_HOST_RANKS_MOST, comm->hosts);
    if (comm_agree(comm, error) == ALLFOLD_OK) {
        memcpy(opened->host, comm->host, sizeof opened->host - 1);
        memcpy(opened->device, comm->device, sizeof opened->device);
        in_host_open(&opened->in_host, comm_handle(comm), MPI_COMM_NULL, sizeof(struct beside_message), error);
    }
    if (comm_agree(comm, error) == ALLFOLD_OK)
        *beside = opened;
    else
        comm_beside_close(opened);
    return error->status;
}

void comm_beside_close(struct comm_beside *beside)
{
    if (beside != NULL && beside->in_host.memory != NULL)
        in_host_close(&beside->in_host);
    free(beside);
}

static void give(struct comm_beside *beside, const struct comm_part *part, const struct error *error)
{
    struct beside_message *const mine = in_host_begin(&beside->in_host);
    mine->error = (struct error){.status = ALLFOLD_OK};
    if (error->status != ALLFOLD_OK)
        error_set(&mine->error, error->status, "rank %d on %s%s%s: %.*s", beside->in_host.rank, beside->host, beside->device[0] != '\0' ? ", " : "",
                  beside->device, ALLFOLD_ERROR_BYTES / 4 * 3, error->text);
    mine->call = part->call;
    mine->count = part->count;
    mine->monoid = part->monoid;
    mine->type = part->type;
    memcpy(&mine->partial, part->partial, monoid_bytes(part->monoid, part->type));
    in_host_give(&beside->in_host);
}

/* *all becomes *all followed by the rank's, of the same call. */
static void append(struct comm_part *all, const struct beside_message *message)
{
    struct partial next;
    memcpy(&next, &message->partial, monoid_bytes(all->monoid, all->type));
    monoid_shift(all->monoid, all->type, &next, all->count);
    monoid_combine(all->monoid, all->type, all->partial, &next);
    all->count += message->count;
}

allfold_status comm_beside_combine(struct comm_beside *beside, struct comm_part *part, struct error *error)
{
    const struct in_host *const in_host = &beside->in_host;
    struct partial partial;
    struct comm_part all = *part;
    const void *found;
    bool same = true;
    all.partial = &partial;
    all.count = 0;
    monoid_identity(part->monoid, part->type, &partial);
    give(beside, part, error);
    if (in_host->size > 1)
        error->status = ALLFOLD_OK; /* its own comes back with rank and host */
    for (int rank = 0; rank < in_host->size; rank++) {
        in_host_take(in_host, rank, &found);
        const struct beside_message *const message = found;
        if (message->error.status != ALLFOLD_OK && error->status == ALLFOLD_OK)
            *error = message->error;
        same = same && (message->error.status != ALLFOLD_OK
                        || (message->call == part->call && message->monoid == part->monoid && message->type == part->type));
        if (same && message->error.status == ALLFOLD_OK)
            append(&all, message);
    }
    if (!same)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "the ranks made different calls: folds must be the same on all, in the same order");
    if (error->status == ALLFOLD_OK) {
        memcpy(part->partial, &partial, monoid_bytes(part->monoid, part->type));
        part->count = all.count;
    }
    return error->status;
}
