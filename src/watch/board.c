/* Opens the board of a host's ranks: see board.h. */
#include "watch/board.h"

#include "comm/shared_memory.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t pid_namespace(void)
{
    struct stat status;
    return stat("/proc/self/ns/pid", &status) == 0 ? (uint64_t)status.st_ino : 0;
}

allfold_status board_open(MPI_Comm local, int rank, struct board **board, struct error *error)
{
    int local_rank, size;
    MPI_Comm_rank(local, &local_rank);
    MPI_Comm_size(local, &size);
    void *memory;
    if (shared_memory_open(local, sizeof(struct board) + (size_t)size * sizeof(struct board_slot), &memory, error) != ALLFOLD_OK)
        return error->status;
    struct board *const opened = memory;
    struct board_slot *const mine = &opened->slots[local_rank];
    mine->rank = rank;
    mine->pid = getpid();
    mine->pid_namespace = pid_namespace();
    MPI_Barrier(local); /* no rank reads a slot that is not filled in */
    *board = opened;
    return ALLFOLD_OK;
}

bool slot_died(const struct board_slot *slot, const struct board_slot *mine)
{
    if (slot->pid_namespace == 0 || slot->pid_namespace != mine->pid_namespace || kill(slot->pid, 0) == 0
        || errno != ESRCH)
        return false;
    return atomic_load(&slot->state) != SLOT_ENDED; /* checked last: it may have ended properly meanwhile */
}
