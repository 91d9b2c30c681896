/* Combines partials through the ranks' shared memory, without MPI: beside.h. In each round all ranks give a message and take those of all,
   in rank order. */
#include "comm/beside.h"

#include "comm/handle.h"
#include "comm/in_host.h"
#include "comm/record.h"

#include <stdlib.h>
#include <string.h>

/* What a rank gives. */
struct beside_message {
    struct record record;
    struct error error; /* if it has failed */
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
    record_write(&mine->record, part, error->status != ALLFOLD_OK ? beside->in_host.rank : -1);
    mine->error = (struct error){.status = ALLFOLD_OK};
    if (error->status != ALLFOLD_OK)
        error_set(&mine->error, error->status, "rank %d on %s%s%s: %.*s", beside->in_host.rank, beside->host, beside->device[0] != '\0' ? ", " : "",
                  beside->device, ALLFOLD_ERROR_BYTES / 4 * 3, error->text);
    in_host_give(&beside->in_host);
}

allfold_status comm_beside_combine(struct comm_beside *beside, struct comm_part *part, struct error *error)
{
    const struct in_host *const in_host = &beside->in_host;
    struct record all, next;
    const void *found;
    give(beside, part, error);
    for (int rank = 0; rank < in_host->size; rank++) {
        in_host_take(in_host, rank, &found);
        memcpy(rank == 0 ? &all : &next, found, ((const struct header *)found)->length);
        if (rank > 0)
            record_append(&all, &next);
    }
    if (all.header.failed_rank >= 0 && in_host->size > 1) { /* its own comes back with rank and host */
        in_host_take(in_host, all.header.failed_rank, &found);
        *error = ((const struct beside_message *)found)->error;
    } else if (all.header.mismatch) {
        record_refuse(error);
    } else if (error->status == ALLFOLD_OK) {
        record_read(&all, part);
    }
    return error->status;
}
