/* The board of a host's ranks, in POSIX shared memory: see board.h. */
#include "cli/board.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_BYTES 64

static size_t board_bytes(int slots) { return sizeof(struct board) + (size_t)slots * sizeof(struct slot); }

/* Makes the memory; its pages are reserved, since a full /dev/shm would otherwise be a SIGBUS later. */
static int create(char name[NAME_BYTES], size_t bytes, struct error *error)
{
    int fd = -1;
    for (int attempt = 0; attempt < 100 && fd < 0; attempt++) {
        snprintf(name, NAME_BYTES, "/allfold.%ld.%d.%lld", (long)getpid(), attempt, (long long)(clock_seconds() * 1e9));
        fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    if (fd < 0)
        error_errno(error, ALLFOLD_IO_ERROR, errno, "cannot make shared memory for the ranks of this host (/dev/shm)");
    else if ((errno = posix_fallocate(fd, 0, (off_t)bytes)) != 0) {
        error_errno(error, ALLFOLD_IO_ERROR, errno, "no room for %zu bytes of shared memory (/dev/shm)", bytes);
        close(fd);
        shm_unlink(name);
        fd = -1;
    }
    if (fd < 0)
        name[0] = '\0';
    return fd;
}

static struct board *map(int fd, size_t bytes, struct error *error)
{
    const int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void *const memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (memory != MAP_FAILED)
        return memory;
    error_errno(error, ALLFOLD_NO_MEMORY, errno, "cannot map %zu bytes of memory", bytes);
    return NULL;
}

/* Whether all of this host's ranks have none; a rank that has none, while another has, says so. */
static allfold_status agree(MPI_Comm local, struct error *error)
{
    int failed = error->status != ALLFOLD_OK, any;
    MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, local);
    if (any && !failed)
        error_set(error, ALLFOLD_IO_ERROR, "another rank of this host cannot use its shared memory (/dev/shm)");
    return error->status;
}

static struct board *map_shared(MPI_Comm local, size_t bytes, struct error *error)
{
    char name[NAME_BYTES] = "";
    struct board *board = NULL;
    int rank, fd = -1;
    MPI_Comm_rank(local, &rank);
    if (rank == 0)
        fd = create(name, bytes, error);
    MPI_Bcast(name, NAME_BYTES, MPI_CHAR, 0, local);
    if (rank > 0 && name[0] != '\0' && (fd = shm_open(name, O_RDWR | O_CLOEXEC, 0)) < 0)
        error_errno(error, ALLFOLD_IO_ERROR, errno, "cannot open the shared memory of this host's ranks (/dev/shm)");
    if (fd >= 0) {
        board = map(fd, bytes, error);
        close(fd);
    }
    agree(local, error); /* all have it, or never will */
    if (rank == 0 && name[0] != '\0')
        shm_unlink(name);
    return board;
}

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
    struct board *const opened =
        size == 1 ? map(-1, board_bytes(1), error) : map_shared(local, board_bytes(size), error);
    if (error->status != ALLFOLD_OK)
        return error->status;
    struct slot *const mine = &opened->slots[local_rank];
    mine->rank = rank;
    mine->pid = getpid();
    mine->pid_namespace = pid_namespace();
    MPI_Barrier(local); /* nobody looks at a slot that is not filled in */
    *board = opened;
    return ALLFOLD_OK;
}

bool slot_died(const struct slot *slot, const struct slot *mine)
{
    if (slot->pid_namespace == 0 || slot->pid_namespace != mine->pid_namespace || kill(slot->pid, 0) == 0
        || errno != ESRCH)
        return false;
    return atomic_load(&slot->state) == SLOT_RUNNING; /* looked at last: it may have ended in order meanwhile */
}
