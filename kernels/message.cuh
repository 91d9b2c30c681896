/* Messages: how a partial gets from one block to another, and to the host, while kernels run. It is sent in words of 64 bits: the lower
   half holds 32 bits of the partial, the upper half the launch id. A word arrives as a whole, so a reader that finds the launch id in all
   words has the whole partial. No fence, flag or order of arrival is needed, which would each cost a trip to memory. (NCCL's LL protocol
   uses the same idea.) */
#pragma once

#include "kernels/kernels.h"
#include "kernels/ptx.cuh"

/* Words of a message that carries a Partial. */
template <class Partial> struct message_words {
    static_assert(sizeof(Partial) % 8 == 0, "partials are whole words");
    static constexpr int count = (int)(sizeof(Partial) / 4);
};

template <class Partial>
static __device__ __forceinline__ void message_send(uint64_t *to, const Partial &partial, uint32_t launch_id)
{
    uint32_t halves[message_words<Partial>::count];
    memcpy(halves, &partial, sizeof partial);
#pragma unroll
    for (int i = 0; i < message_words<Partial>::count; i += 2)
        store_words(to + i, (uint64_t)launch_id << 32 | halves[i], (uint64_t)launch_id << 32 | halves[i + 1]);
}

/* Whether all of the message of that launch has arrived; then *partial is it. */
template <class Partial>
static __device__ __forceinline__ bool message_look(const uint64_t *from, uint32_t launch_id, Partial *partial)
{
    uint32_t halves[message_words<Partial>::count];
    bool complete = true;
#pragma unroll
    for (int i = 0; i < message_words<Partial>::count; i += 2) {
        uint64_t words[2];
        load_words(from + i, words);
        halves[i] = (uint32_t)words[0];
        halves[i + 1] = (uint32_t)words[1];
        complete = complete && words[0] >> 32 == launch_id && words[1] >> 32 == launch_id;
    }
    if (complete)
        memcpy(partial, halves, sizeof *partial);
    return complete;
}

/* Waits for the message of that launch. */
template <class Partial> static __device__ __forceinline__ Partial message_receive(const uint64_t *from, uint32_t launch_id)
{
    Partial partial;
    while (!message_look(from, launch_id, &partial))
        wait_for_others();
    return partial;
}

/* message_look by a whole warp, in one access, which counts over the link to the host. *partial is shared memory. */
template <class Partial>
static __device__ __forceinline__ bool message_look_by_warp(const uint64_t *from, uint32_t launch_id, Partial *partial)
{
    static_assert(message_words<Partial>::count <= 64, "two words a lane");
    const int at = (int)(threadIdx.x % 32) * 2;
    const bool mine = at < message_words<Partial>::count;
    uint64_t words[2] = {(uint64_t)launch_id << 32, (uint64_t)launch_id << 32};
    if (mine)
        load_words(from + at, words);
    if (__ballot_sync(0xffffffffu, words[0] >> 32 != launch_id || words[1] >> 32 != launch_id) != 0)
        return false;
    if (mine) {
        ((uint32_t *)partial)[at] = (uint32_t)words[0];
        ((uint32_t *)partial)[at + 1] = (uint32_t)words[1];
    }
    __syncwarp();
    return true;
}

/* On the host: takes a message, if all of it has arrived; if not, *to may be written in part. */
static inline bool message_take(const struct fold_message *message, uint32_t launch_id, void *to, size_t bytes)
{
    for (size_t i = 0; i < bytes / 4; i++) {
        const uint64_t word = __atomic_load_n(&message->words[i], __ATOMIC_RELAXED);
        const uint32_t half = (uint32_t)word;
        if (word >> 32 != launch_id)
            return false;
        memcpy((char *)to + 4 * i, &half, sizeof half);
    }
    __atomic_thread_fence(__ATOMIC_ACQUIRE); /* it may tell of other memory */
    return true;
}
static inline void message_put(struct fold_message *message, uint32_t launch_id, const void *from, size_t bytes)
{
    for (size_t i = 0; i < bytes / 4; i++) {
        uint32_t half;
        memcpy(&half, (const char *)from + 4 * i, sizeof half);
        __atomic_store_n(&message->words[i], (uint64_t)launch_id << 32 | half, __ATOMIC_RELAXED);
    }
}
