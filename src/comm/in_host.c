/* Exchanges messages among the ranks of one host: see in_host.h. Each rank has two slots in shared memory, one for even and
   one for odd rounds. Only that rank writes them. In a round it writes its message, then the number of the round. A reader
   waits for that number. It is written after the message with release order and read before the message with acquire order,
   so the message is whole.

   Why no slot is overwritten while it is still read. A slot that is read in round k is written again in round k + 2 at the
   earliest. First, let all ranks take all messages in every round. A rank begins round k + 2 after it has ended round k + 1. For
   that all ranks had begun round k + 1, so they had finished round k. Second, let rank 0 take all messages in one round and give
   its result in the next, which the others take. Rank 0 gives the result after it has taken all messages. The others gave these
   after they had read the result before, and they give their next messages after they have taken this result.

   One slot would not be enough in the first case: a rank that has finished round k may begin round k + 1 while others still wait
   for k. For the same reasons no number is missed: while a rank waits for k in a slot, the owner of the slot cannot have written
   k + 2. */
#include "comm/in_host.h"

#include "comm/shared_memory.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* Slots begin at multiples of this: two cache lines, which processors fetch together. */
#define SLOT_ALIGN 128
/* How often a rank polls for another's number before it yields its core: a few microseconds. It does not poll if there are more
   ranks than cores, because the rank that it waits for may need the core. */
#define LOOKS 256

struct host_slot {
    _Atomic uint64_t round;
    _Alignas(16) unsigned char message[];
};

static size_t memory_bytes(const struct in_host *in_host) { return 2 * (size_t)in_host->size * in_host->slot_bytes; }

static struct host_slot *slot_of(const struct in_host *in_host, int rank)
{
    return (struct host_slot *)(in_host->memory + (2 * (size_t)rank + in_host->round % 2) * in_host->slot_bytes);
}

allfold_status in_host_open(struct in_host *in_host, MPI_Comm comm, MPI_Comm progress, size_t bytes, struct error *error)
{
    void *memory = NULL;
    *in_host = (struct in_host){.progress = progress};
    in_host->slot_bytes = (sizeof(struct host_slot) + bytes + SLOT_ALIGN - 1) / SLOT_ALIGN * SLOT_ALIGN;
    MPI_Comm_rank(comm, &in_host->rank);
    MPI_Comm_size(comm, &in_host->size);
    in_host->looks = in_host->size <= sysconf(_SC_NPROCESSORS_ONLN) ? LOOKS : 0;
    shared_memory_open(comm, memory_bytes(in_host), &memory, error);
    in_host->memory = memory;
    return error->status;
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

/* Waits until a rank has written its message. A rank that waits long yields its core, so that the other rank can run if there are
   more ranks than cores. It also lets MPI make progress with messages sent before, because the other rank may be waiting for one
   of them. */
static int wait_for(const struct in_host *in_host, const struct host_slot *slot)
{
    for (int looks = 0; atomic_load_explicit(&slot->round, memory_order_acquire) != in_host->round; looks++)
        if (looks < in_host->looks)
            pause_core();
        else {
            int found;
            const int code = in_host->progress == MPI_COMM_NULL ? MPI_SUCCESS
                             : MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, in_host->progress, &found, MPI_STATUS_IGNORE);
            if (code != MPI_SUCCESS)
                return code;
            sched_yield();
            looks = in_host->looks;
        }
    return MPI_SUCCESS;
}

void *in_host_begin(struct in_host *in_host)
{
    in_host->round++;
    return slot_of(in_host, in_host->rank)->message;
}

void in_host_give(struct in_host *in_host)
{
    atomic_store_explicit(&slot_of(in_host, in_host->rank)->round, in_host->round, memory_order_release);
}

int in_host_take(const struct in_host *in_host, int rank, const void **message)
{
    const struct host_slot *const slot = slot_of(in_host, rank);
    *message = slot->message;
    return wait_for(in_host, slot);
}
