/* Messages: how a partial gets from one block to another, and to the host, while kernels run. It travels in words of 64
   bits: in the lower half 32 bits of the partial, in the upper the number of the launch. A word arrives whole, so who finds
   the number in all words has the partial: without fence, flag or order of arrival, each of which would cost a trip to
   memory. (NCCL's LL protocol, of the same idea, has 32 bits of data and of flag.) */
#ifndef ALLFOLD_MESSAGE_CUH
#define ALLFOLD_MESSAGE_CUH

#include "kernels/kernels.h"
#include "kernels/ptx.cuh"

/* Words of a message that carries a Partial. */
template <class Partial> struct message_words {
    static_assert(sizeof(Partial) % 8 == 0, "partials are whole words");
    static constexpr int count = (int)(sizeof(Partial) / 4);
};

template <class Partial>
static __device__ __forceinline__ void message_send(uint64_t *to, const Partial &partial, uint32_t number)
{
    uint32_t halves[message_words<Partial>::count];
    memcpy(halves, &partial, sizeof partial);
#pragma unroll
    for (int i = 0; i < message_words<Partial>::count; i += 2)
        store_words(to + i, (uint64_t)number << 32 | halves[i], (uint64_t)number << 32 | halves[i + 1]);
}

/* Waits for the message of that number. */
template <class Partial> static __device__ __forceinline__ Partial message_receive(const uint64_t *from, uint32_t number)
{
    uint32_t halves[message_words<Partial>::count];
    for (;;) {
        bool complete = true;
#pragma unroll
        for (int i = 0; i < message_words<Partial>::count; i += 2) {
            uint64_t words[2];
            load_words(from + i, words);
            halves[i] = (uint32_t)words[0];
            halves[i + 1] = (uint32_t)words[1];
            complete = complete && words[0] >> 32 == number && words[1] >> 32 == number;
        }
        if (complete)
            break;
        wait_for_others();
    }
    Partial partial;
    memcpy(&partial, halves, sizeof partial);
    return partial;
}

#endif
