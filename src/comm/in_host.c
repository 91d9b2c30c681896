/* The exchange of ranks of one host: see in_host.h. Each rank has two slots in shared memory, which only it writes, for the
   rounds of even and of odd numbers. In each round it writes its message, then the round's number, and waits until that number
   stands in every rank's slot.

   Why a message is whole. The number is written after it with release order and read before it with acquire order.

   Why nothing is overwritten that somebody still reads. A slot that is read in round k is written again in round k + 2. Whoever
   begins round k + 2 has ended round k + 1, for which all ranks must have begun round k + 1, in which what they got in round k
   is no longer theirs to read (in_host.h). One slot would not do: who ends round k may begin round k + 1 while others still look
   for k. More than two add nothing.

   Why a number is not missed. While a rank waits for k in a slot, its owner cannot be in round k + 2, by the same reason: so what
   the slot holds is k - 2, or k. */
#include "comm/in_host.h"

#include "comm/shared_memory.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* Slots begin at multiples of this: two lines of a cache, which processors fetch together. */
#define SLOT_ALIGN 128
/* How often a rank looks for another's number before it lets others have its core: a few microseconds. Not at all where there
   are more ranks than cores: another may be the one that is waited for. */
#define LOOKS 256

struct slot {
    _Atomic uint64_t round;
    unsigned char message[];
};

static size_t memory_bytes(const struct in_host *in_host) { return 2 * (size_t)in_host->size * in_host->slot_bytes; }

static struct slot *slot_of(const struct in_host *in_host, int rank)
{
    return (struct slot *)(in_host->memory + (2 * (size_t)rank + in_host->round % 2) * in_host->slot_bytes);
}

void in_host_open(struct in_host *in_host, MPI_Comm comm, size_t bytes)
{
    struct error ignored = {0};
    void *memory;
    *in_host = (struct in_host){.comm = comm};
    in_host->slot_bytes = (sizeof(struct slot) + bytes + SLOT_ALIGN - 1) / SLOT_ALIGN * SLOT_ALIGN;
    MPI_Comm_rank(comm, &in_host->rank);
    MPI_Comm_size(comm, &in_host->size);
    in_host->looks = in_host->size <= sysconf(_SC_NPROCESSORS_ONLN) ? LOOKS : 0;
    if (in_host->size <= IN_HOST_RANKS_MOST
        && shared_memory_open(comm, memory_bytes(in_host), &memory, &ignored) == ALLFOLD_OK)
        in_host->memory = memory;
}

void in_host_close(struct in_host *in_host)
{
    shared_memory_close(in_host->memory, memory_bytes(in_host));
    in_host->memory = NULL;
}

static inline void pause_core(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Waits until a rank has written its message. Who waits long lets others run, among them that rank where there are more ranks
   than cores, and MPI go on with messages sent before: that rank may be waiting for one of them. */
static int wait_for(const struct in_host *in_host, const struct slot *slot)
{
    for (int looks = 0; atomic_load_explicit(&slot->round, memory_order_acquire) != in_host->round; looks++)
        if (looks < in_host->looks)
            pause_core();
        else {
            int found;
            const int code = MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, in_host->comm, &found, MPI_STATUS_IGNORE);
            if (code != MPI_SUCCESS)
                return code;
            sched_yield();
            looks = in_host->looks;
        }
    return MPI_SUCCESS;
}

int in_host_exchange(struct in_host *in_host, const void *message, size_t bytes)
{
    in_host->round++;
    struct slot *const mine = slot_of(in_host, in_host->rank);
    memcpy(mine->message, message, bytes);
    atomic_store_explicit(&mine->round, in_host->round, memory_order_release);
    for (int rank = 0; rank < in_host->size; rank++) {
        const int code = wait_for(in_host, slot_of(in_host, rank));
        if (code != MPI_SUCCESS)
            return code;
    }
    return MPI_SUCCESS;
}

const void *in_host_message(const struct in_host *in_host, int rank) { return slot_of(in_host, rank)->message; }
