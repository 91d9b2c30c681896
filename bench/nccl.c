/* The peer NCCL: ncclAllReduce of CUB's results, where configure found NCCL (--with-nccl). */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "bench/run.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef ALLFOLD_HAVE_NCCL
#include <nccl.h>

struct bench_nccl {
    ncclComm_t comm;
};

/* How the ranks' opening ended on this rank, in words; empty where it went well. */
static void open_comm(const struct bench *b, struct bench_nccl *nccl, char why[160])
{
    ncclUniqueId id = {{0}};
    ncclResult_t code = b->rank == 0 ? ncclGetUniqueId(&id) : ncclSuccess;
    int failed = code != ncclSuccess;
    why[0] = '\0';
    MPI_Bcast(&failed, 1, MPI_INT, 0, b->comm);
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, b->comm);
    if (!failed)
        code = ncclCommInitRank(&nccl->comm, b->size, id, b->rank);
    if (code != ncclSuccess)
        snprintf(why, 160, "%s", ncclGetErrorString(code));
}

allfold_status bench_nccl_open(const struct bench *b, struct bench_nccl **nccl, struct error *error)
{
    char why[160];
    struct bench_nccl *const opened = calloc(1, sizeof *opened);
    struct error refused = {0};
    struct comm *const comm = &b->context->comm;
    if (opened == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for NCCL");
    if (comm_agree(comm, error) != ALLFOLD_OK) {
        free(opened);
        return error->status;
    }
    open_comm(b, opened, why);
    if (why[0] != '\0')
        error_set(&refused, ALLFOLD_UNSUPPORTED, "%s", why);
    if (comm_agree(comm, &refused) == ALLFOLD_OK) {
        *nccl = opened;
        return ALLFOLD_OK;
    }
    if (b->rank == 0)
        fprintf(stderr, "allfold: without the peer NCCL, which refuses: %s\n", refused.text);
    bench_nccl_close(opened);
    return ALLFOLD_OK;
}

void bench_nccl_close(struct bench_nccl *nccl)
{
    if (nccl != NULL && nccl->comm != NULL)
        ncclCommDestroy(nccl->comm);
    free(nccl);
}

/* The type of CUB's result. */
static ncclDataType_t type_of(allfold_type type, enum cub_work work)
{
    const bool max = work == CUB_MAX;
    switch (type) {
    case ALLFOLD_F64: return ncclFloat64;
    case ALLFOLD_INT32: return max ? ncclInt32 : ncclUint32;
    case ALLFOLD_F16: return max ? ncclFloat16 : ncclFloat32;
    case ALLFOLD_BF16: return max ? ncclBfloat16 : ncclFloat32;
    default: return ncclFloat32;
    }
}

allfold_status bench_nccl_combine(struct bench *b, enum cub_work work, struct error *error)
{
    void *const result = b->machine->result;
    const ncclResult_t code = ncclAllReduce(result, result, 1, type_of(b->task->type, work),
                                            work == CUB_MAX ? ncclMax : ncclSum, b->nccl->comm,
                                            (cudaStream_t)b->machine->stream);
    if (code != ncclSuccess)
        error_set(error, ALLFOLD_DEVICE_ERROR, "ncclAllReduce: %s", ncclGetErrorString(code));
    return error->status;
}

#else

allfold_status bench_nccl_open(const struct bench *b, struct bench_nccl **nccl, struct error *error)
{
    (void)b;
    (void)nccl;
    return error->status;
}

void bench_nccl_close(struct bench_nccl *nccl) { (void)nccl; }

allfold_status bench_nccl_combine(struct bench *b, enum cub_work work, struct error *error)
{
    (void)b;
    (void)work;
    return error_set(error, ALLFOLD_UNSUPPORTED, "this build has no NCCL");
}
#endif
