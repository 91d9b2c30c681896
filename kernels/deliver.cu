/* Stores values that the host finds while a stream waits for them: one warp, of which each lane waits for one result and
   stores it. */
#include "kernels/kernels.h"
#include "kernels/element.cuh"
#include "kernels/message.cuh"

static __device__ __forceinline__ void deliver_value(void *to, int bytes, uint64_t value)
{
    switch (bytes) {
    case 2: *(uint16_t *)to = (uint16_t)value; break;
    case 4: *(uint32_t *)to = (uint32_t)value; break;
    default: *(uint64_t *)to = value; break;
    }
}

static __global__ void deliver_kernel(const struct fold_mailbox *mailbox, struct delivery delivery)
{
    const int i = (int)threadIdx.x;
    if (i >= delivery.count)
        return;
    struct delivered found;
    while (!message_look(mailbox->orders.words + i * message_words<struct delivered>::count, delivery.id, &found))
        wait_for_host();
    const struct delivery_output to = delivery.outputs[i];
    if (to.values != NULL)
        deliver_value(to.values, to.bytes, found.value);
    if (to.indices != NULL)
        *to.indices = found.index;
}

int deliver_launch(const struct fold_mailbox *mailbox, const struct delivery *delivery)
{
    const cudaLaunchConfig_t config = launch_config(1, 32, delivery->stream);
    return cudaLaunchKernelEx(&config, deliver_kernel, mailbox, *delivery);
}

void deliver_give(struct fold_mailbox *mailbox, const struct delivery *delivery, const struct delivered *values)
{
    message_put(&mailbox->orders, delivery->id, values, (size_t)delivery->count * sizeof *values);
}
