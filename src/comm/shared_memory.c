/* Maps POSIX shared memory: see shared_memory.h. MPI_Win_allocate_shared is not used: in Open MPI 4.1.4, if the first rank
   finds no room for it, the other ranks wait forever. */
#include "comm/shared_memory.h"

#include "base/host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define NAME_BYTES 64

/* Creates the memory, still without pages. */
static int create(char name[NAME_BYTES], struct error *error)
{
    int fd = -1;
    for (int attempt = 0; attempt < 100 && fd < 0; attempt++) {
        snprintf(name, NAME_BYTES, "/allfold.%ld.%d.%lld", (long)getpid(), attempt, (long long)(clock_seconds() * 1e9));
        fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    if (fd < 0) {
        error_errno(error, ALLFOLD_IO_ERROR, errno, "cannot make shared memory for the ranks of this host (/dev/shm)");
        name[0] = '\0';
    }
    return fd;
}

/* Reserves its pages, because a full /dev/shm would otherwise be a SIGBUS later. */
static void reserve(int fd, size_t bytes, struct error *error)
{
    if ((errno = posix_fallocate(fd, 0, (off_t)bytes)) != 0)
        error_errno(error, ALLFOLD_IO_ERROR, errno, "no room for %zu bytes of shared memory (/dev/shm)", bytes);
}

static void *map(int fd, size_t bytes, struct error *error)
{
    const int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void *const memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (memory != MAP_FAILED)
        return memory;
    error_errno(error, ALLFOLD_NO_MEMORY, errno, "cannot map %zu bytes of memory", bytes);
    return NULL;
}

/* Whether all ranks have the memory. If another rank has not, a rank that has it sets an error that says so. */
static allfold_status agree(MPI_Comm comm, struct error *error)
{
    int failed = error->status != ALLFOLD_OK, any;
    MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, comm);
    if (any && !failed)
        error_set(error, ALLFOLD_IO_ERROR, "another rank of this host cannot use its shared memory (/dev/shm)");
    return error->status;
}

static void *map_shared(MPI_Comm comm, size_t bytes, struct error *error)
{
    char name[NAME_BYTES] = "";
    void *memory = NULL;
    int rank, fd = -1;
    MPI_Comm_rank(comm, &rank);
    if (rank == 0)
        fd = create(name, error);
    MPI_Bcast(name, NAME_BYTES, MPI_CHAR, 0, comm);
    if (rank > 0 && name[0] != '\0' && (fd = shm_open(name, O_RDWR | O_CLOEXEC, 0)) < 0)
        error_errno(error, ALLFOLD_IO_ERROR, errno, "cannot open the shared memory of this host's ranks (/dev/shm)");
    if (fd >= 0)
        memory = map(fd, bytes, error);
    agree(comm, error); /* either all ranks have it, or none ever will */
    if (rank == 0 && name[0] != '\0')
        shm_unlink(name); /* before it has pages: a rank that is killed leaves none behind */
    if (rank == 0 && error->status == ALLFOLD_OK)
        reserve(fd, bytes, error);
    if (fd >= 0)
        close(fd);
    agree(comm, error);
    return memory;
}

allfold_status shared_memory_open(MPI_Comm comm, size_t bytes, void **memory, struct error *error)
{
    int size;
    MPI_Comm_size(comm, &size);
    void *const opened = size == 1 ? map(-1, bytes, error) : map_shared(comm, bytes, error);
    if (error->status == ALLFOLD_OK)
        *memory = opened;
    else
        shared_memory_close(opened, bytes);
    return error->status;
}

void shared_memory_close(void *memory, size_t bytes)
{
    if (memory != NULL)
        munmap(memory, bytes);
}
