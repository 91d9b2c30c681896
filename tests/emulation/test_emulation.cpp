/* The emulation of CUDA itself: right kernels give what they should in every order, and kernels with a planted mistake are
   caught. What the emulation cannot catch, the other tests of kernels do not check either. */
#include "cuda_runtime.h"

#include "emulation.h"
#include "kernels/message.cuh"

#define TAP_WITHOUT_MPI
#include "tests/tap.h"

#include <atomic>
#include <stdlib.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

constexpr int ORDERS = 20, THREADS = 64, BLOCKS = 3;

static size_t shared_bytes; /* asked for by the next launches */

template <class... Parameters, class... Arguments>
static bool launch(dim3 blocks, dim3 threads, void (*kernel)(Parameters...), Arguments... arguments)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = blocks;
    config.blockDim = threads;
    config.dynamicSmemBytes = shared_bytes;
    return cudaLaunchKernelEx(&config, kernel, arguments...) == cudaSuccess;
}

/* Sums 1 .. blockDim.x in shared memory, twice, as blockIdx.x * 1000 + sum. wait_written, wait_read: the barriers that are
   needed before the numbers are read, and before they are overwritten. */
template <bool wait_written, bool wait_read> static __global__ void sum_twice(int *sums)
{
    __shared__ int room[THREADS];
    for (int round = 0; round < 2; round++) {
        room[threadIdx.x] = (int)threadIdx.x + 1;
        if (wait_written)
            __syncthreads();
        if (threadIdx.x == 40) {
            int sum = (int)blockIdx.x * 1000;
            for (int i = 0; i < THREADS; i++)
                sum += room[i];
            sums[blockIdx.x * 2 + (unsigned int)round] = sum;
        }
        if (wait_read)
            __syncthreads();
        room[threadIdx.x] = 0;
    }
}

/* The same, each thread of its own numbers, which it copies in the background in two groups. pending: groups that it does not wait for. */
template <int pending> static __global__ void sum_copies(int *sums)
{
    __shared__ uint4 room[2][THREADS];
    static const uint4 numbers[2] = {{100, 200, 300, 400}, {20, 30, 10, 20}};
    for (int group = 0; group < 2; group++) {
        copy_async(&room[group][threadIdx.x], &numbers[group]);
        copy_commit();
    }
    copy_wait(pending);
    const uint4 first = room[0][threadIdx.x], second = room[1][threadIdx.x];
    const unsigned int sum = first.x + first.y + first.z + first.w + (pending == 1 ? 80 : second.x + second.y + second.z + second.w);
    if (threadIdx.x == 40)
        for (int round = 0; round < 2; round++)
            sums[blockIdx.x * 2 + (unsigned int)round] = (int)(blockIdx.x * 1000 + sum + 1000);
}

/* In how many orders the sums are right. */
static int orders_right(void (*kernel)(int *))
{
    int right = 0;
    for (int order = 0; order < ORDERS; order++) {
        int sums[2 * BLOCKS] = {0}, wrong = 0;
        emulation_order((uint64_t)order);
        wrong += !launch(BLOCKS, THREADS, kernel, &sums[0]);
        for (int i = 0; i < 2 * BLOCKS; i++)
            wrong += sums[i] != i / 2 * 1000 + THREADS * (THREADS + 1) / 2;
        right += wrong == 0;
    }
    return right;
}

static __global__ void count_threads(int *counts, int *wrong)
{
    const dim3 at(threadIdx.x + blockDim.x * blockIdx.x, threadIdx.y + blockDim.y * blockIdx.y,
                  threadIdx.z + blockDim.z * blockIdx.z);
    const unsigned int width = blockDim.x * gridDim.x, height = blockDim.y * gridDim.y;
    atomicAdd(&counts[at.x + width * (at.y + height * at.z)], 1);
    const int lane = emulation_lane();
    *wrong += (int)(threadIdx.x + 8 * threadIdx.y) % 32 != lane; /* of 8 x 4 x 2 threads */
}

/* Each shuffle against what the CUDA programming guide says of it; lanes 0..15 and 16..31 apart, and in segments. */
static __global__ void shuffle(int *wrong)
{
    const int lane = (int)threadIdx.x, half = lane / 16;
    const unsigned int mask = half == 0 ? 0xffffu : 0xffff0000u;
    const double number = lane * 0.5;
    *wrong += __shfl_down_sync(0xffffffffu, lane, 5) != (lane + 5 < 32 ? lane + 5 : lane);
    *wrong += __shfl_up_sync(0xffffffffu, lane, 5) != (lane >= 5 ? lane - 5 : lane);
    *wrong += __shfl_xor_sync(0xffffffffu, number, 7) != (lane ^ 7) * 0.5;
    *wrong += __shfl_sync(0xffffffffu, lane, 33) != 1;
    *wrong += __shfl_down_sync(0xffffffffu, lane, 3, 8) != (lane % 8 + 3 < 8 ? lane + 3 : lane);
    *wrong += __shfl_up_sync(0xffffffffu, lane, 3, 8) != (lane % 8 >= 3 ? lane - 3 : lane);
    *wrong += __shfl_xor_sync(0xffffffffu, lane, 4, 8) != (lane ^ 4);
    if (half == 0)
        *wrong += __shfl_sync(mask, lane, 3) != 3;
    else
        *wrong += __shfl_sync(mask, lane, 20) != 20;
    *wrong += __ballot_sync(mask, lane % 2) != (0xaaaaaaaau & mask);
    __syncwarp();
}

/* Sums the blocks' numbers over the grid, each number passed on in order, with shared memory that must survive the wait. */
static __global__ void relay(int *turn, int *sums)
{
    __shared__ int kept;
    if (threadIdx.x == 0)
        kept = 100 + (int)blockIdx.x;
    __syncthreads();
    while (*turn != (int)blockIdx.x)
        emulation_pause({__FILE__, __LINE__});
    __syncthreads();
    if (threadIdx.x == 33) {
        sums[blockIdx.x] = kept + (blockIdx.x > 0 ? sums[blockIdx.x - 1] : 0);
        *turn = (int)blockIdx.x + 1;
    }
}
/* Blocks that write to other pages of shared memory, of which each must see its own numbers, and elsewhere all ones. */
static __global__ void write_pages(int *written, int *sums)
{
    __shared__ int room[BLOCKS][8192];
    const int before = room[blockIdx.x][5000];
    room[blockIdx.x][5000] = 100 + (int)blockIdx.x;
    for (++*written; *written < BLOCKS;)
        emulation_pause({__FILE__, __LINE__});
    sums[blockIdx.x] = 1000 * before;
    for (int block = 0; block < BLOCKS; block++)
        sums[blockIdx.x] += room[block][5000];
}
static __global__ void waits_for_nobody(const int *turn)
{
    while (*turn == 0)
        emulation_pause({__FILE__, __LINE__});
}

/* The first block sends a message of kernels/message.cuh, others receive it: a thread, a warp, and one that looks at the last
   word alone. */
constexpr int HALVES = 14;
struct letter {
    uint32_t halves[HALVES];
};
static __device__ void receive_by_last_word(const uint64_t *from, uint32_t number, letter *taken)
{
    while (((const volatile uint64_t *)from)[HALVES - 1] >> 32 != number)
        wait_for_others();
    for (int i = 0; i < HALVES; i++)
        taken->halves[i] = (uint32_t)from[i];
}
static __global__ void post(uint64_t *words, uint32_t number, letter *taken)
{
    __shared__ letter read;
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        letter sent;
        for (int i = 0; i < HALVES; i++)
            sent.halves[i] = number * 100 + (uint32_t)i;
        message_send(words, sent, number);
    } else if (blockIdx.x == 1 && threadIdx.x == 0) {
        taken[0] = message_receive<letter>(words, number);
    } else if (blockIdx.x == 2) {
        while (!message_look_by_warp(words, number, &read))
            wait_for_others();
        if (threadIdx.x == 0)
            taken[1] = read;
    } else if (blockIdx.x == 3 && threadIdx.x == 0) {
        receive_by_last_word(words, number, &taken[2]);
    }
}

/* By receiver, in how many orders the message is whole when it is taken; words are those of the message before, at first. */
static void count_whole(int whole[3])
{
    alignas(16) uint64_t words[HALVES] = {0};
    for (int order = 0; order < ORDERS; order++) {
        letter taken[3] = {};
        emulation_order((uint64_t)order);
        if (!launch(4, 32, post, &words[0], (uint32_t)order + 1, &taken[0]))
            return;
        for (int i = 0; i < 3; i++) {
            bool right = true;
            for (int half = 0; half < HALVES; half++)
                right = right && taken[i].halves[half] == (uint32_t)(order + 1) * 100 + (uint32_t)half;
            whole[i] += right;
        }
    }
}

/* What shared memory holds before a block writes it. */
static __global__ void read_shared(int *found)
{
    __shared__ int room[THREADS];
    found[blockIdx.x * THREADS + threadIdx.x] = room[threadIdx.x];
    room[threadIdx.x] = 1;
}

static __global__ void ends_before_barrier()
{
    if (threadIdx.x < 40)
        __syncthreads();
}
static __global__ void two_barriers()
{
    if (threadIdx.x < 32)
        __syncthreads();
    else
        __syncthreads();
}
static __global__ void lane_missing()
{
    if (threadIdx.x != 3)
        __shfl_down_sync(0xffffffffu, 1, 1);
}
static __global__ void lane_elsewhere()
{
    if (threadIdx.x < 16)
        __shfl_down_sync(0xffffffffu, 1, 1);
    else
        __syncthreads();
}
static __global__ void not_in_mask() { __syncwarp(0xfffffffeu); }
static __global__ void source_not_in_mask()
{
    if (threadIdx.x < 16)
        __shfl_down_sync(0xffffu, 1, 1);
}
static __global__ void half_a_warp() { __syncwarp(); }

static __global__ void unaligned()
{
    __shared__ uint4 room[2];
    if (threadIdx.x == 3)
        __stcg((uint4 *)((char *)room + 4), make_uint4(1, 2, 3, 4));
}

static __global__ void stack_overflow(int *found)
{
    volatile char room[4096];
    room[0] = 1;
    *found += room[0];
    if (*found != 0)
        stack_overflow(found);
    *found += room[0];
}

template <class Function> static bool ends_program(Function function)
{
    const pid_t child = fork();
    if (child == 0) {
        close(STDERR_FILENO);
        function();
        _exit(0);
    }
    int status = 0;
    return waitpid(child, &status, 0) == child && status != 0;
}

template <class Kernel> static void test_fault(Kernel *kernel, unsigned int threads, const char *text)
{
    bool caught = true;
    for (int order = 0; order < ORDERS; order++) {
        emulation_order((uint64_t)order);
        caught = !launch(1, threads, kernel) && strstr(emulation_fault(), text) != NULL && caught;
    }
    tap_ok(caught, "caught: %s", emulation_fault());
}

static void test_right_kernels(void)
{
    tap_ok(orders_right(sum_twice<true, true>) == ORDERS, "barriers and shared memory give the same in all orders");

    int counts[16 * 8 * 4] = {0}, wrong = 0;
    bool right = launch(dim3(2, 2, 2), dim3(8, 4, 2), count_threads, &counts[0], &wrong);
    for (int count : counts)
        right = right && count == 1;
    tap_ok(right && wrong == 0, "every thread of three dimensions runs once");

    right = true;
    for (int order = 0; order < ORDERS; order++) {
        emulation_order((uint64_t)order);
        right = launch(1, 32, shuffle, &wrong) && right;
    }
    tap_ok(right && wrong == 0, "shuffles and votes: whole warps, masks, segments");

    right = true;
    for (int order = 0; order < ORDERS; order++) {
        int turn = 0, sums[BLOCKS] = {0};
        emulation_order((uint64_t)order);
        right = launch(BLOCKS, THREADS, relay, &turn, &sums[0]) && turn == BLOCKS && sums[BLOCKS - 1] == 303 && right;
    }
    tap_ok(right, "blocks that wait for each other");
    for (int order = 0; order < ORDERS; order++) {
        int written = 0, sums[BLOCKS] = {0};
        emulation_order((uint64_t)order);
        right = launch(BLOCKS, 1, write_pages, &written, &sums[0]) && right;
        for (int block = 0; block < BLOCKS; block++)
            right = right && sums[block] == -1000 + 100 + block - (BLOCKS - 1);
    }
    tap_ok(right, "and that write to other pages of shared memory");

    int found[BLOCKS * THREADS] = {0};
    right = launch(BLOCKS, THREADS, read_shared, &found[0]);
    for (int value : found)
        right = right && value == -1;
    tap_ok(right, "shared memory is filled anew before each block");

    tap_ok(!launch(0, 32, half_a_warp) && !launch(1, 0, half_a_warp) && !launch(1, 1025, half_a_warp)
               && cudaGetLastError() == cudaErrorInvalidConfiguration && cudaGetLastError() == cudaSuccess,
           "a launch of no blocks, no threads or too many threads is refused");
}

static void test_mistakes(void)
{
    tap_ok(orders_right(sum_twice<false, true>) < ORDERS / 2, "caught: no barrier between write and read");
    tap_ok(orders_right(sum_twice<true, false>) < ORDERS / 2, "caught: no barrier between read and write");
    tap_ok(orders_right(sum_copies<0>) == ORDERS && orders_right(sum_copies<1>) == ORDERS, "copies in the background are there when they are waited for");
    tap_ok(orders_right(sum_copies<2>) < ORDERS / 2, "caught: copies that are not waited for");
    int whole[3] = {0};
    count_whole(whole);
    tap_ok(whole[0] == ORDERS && whole[1] == ORDERS, "messages that arrive word by word are whole when they are taken");
    tap_ok(whole[2] < ORDERS / 2, "caught: a message that is taken by its last word");
    const int never = 0;
    tap_ok(!launch(BLOCKS, THREADS, waits_for_nobody, &never) && strstr(emulation_fault(), "for another block") != NULL,
           "caught: %s", emulation_fault());
    test_fault(ends_before_barrier, THREADS, "ended");
    test_fault(two_barriers, THREADS, "wait for each other");
    test_fault(lane_missing, 32, "for lanes ffffffff");
    test_fault(lane_elsewhere, 32, "__syncthreads");
    test_fault(not_in_mask, 32, "without itself");
    test_fault(source_not_in_mask, 32, "not one of");
    test_fault(half_a_warp, 16, "for lanes ffffffff");
    test_fault(unaligned, 32, "not aligned");
    int deep = 1;
    tap_ok(ends_program([&] { launch(1, 1, stack_overflow, &deep); }), "caught: a thread that needs too much stack");
    tap_ok(orders_right(sum_twice<true, true>) == ORDERS, "the next launch after a mistake is right");
}

/* Lets the other threads of the host run in the middle of a launch. */
static __global__ void sum_and_yield(int *sums)
{
    std::this_thread::yield();
    sum_twice<true, true>(sums);
}

/* Threads of the host that launch at the same time: each gets its own results, and only one its error. */
static void test_host_threads(void)
{
    constexpr int LAUNCHES = 50;
    std::atomic<int> right(0);
    std::thread hosts[4];
    emulation_order(5);
    for (std::thread &host : hosts)
        host = std::thread([&right, is_wrong = &host == hosts] {
            for (int i = 0; i < LAUNCHES; i++) {
                int sums[2 * BLOCKS] = {0}, good = 0;
                const bool launched = launch(BLOCKS, THREADS, sum_and_yield, &sums[0]);
                if (is_wrong)
                    launch(0, THREADS, sum_and_yield, &sums[0]);
                for (int j = 0; j < 2 * BLOCKS; j++)
                    good += sums[j] == j / 2 * 1000 + THREADS * (THREADS + 1) / 2;
                right += launched && good == 2 * BLOCKS && (cudaGetLastError() != cudaSuccess) == is_wrong;
            }
        });
    for (std::thread &host : hosts)
        host.join();
    emulation_order(0);
    tap_ok(right == 4 * LAUNCHES, "four threads of the host launch at the same time");
}

#ifdef EMULATION_SANITIZED
/* These end the program: the sanitizers see them. */
static __global__ void read_beyond(const int *x, int *found) { *found += x[threadIdx.x]; }
static __global__ void write_beyond_shared(int last, int *found)
{
    __shared__ int room[THREADS];
    for (int i = 0; i <= last; i++)
        room[i] = i;
    *found += room[THREADS / 2];
}
static __global__ void write_dynamic(int last, int *found)
{
    extern __shared__ __align__(16) unsigned char bytes[];
    int *const room = (int *)bytes;
    *found += room[last];
    room[last] = 7;
}
static __global__ void read_flag(bool set, int *found)
{
    __shared__ bool flag;
    if (set)
        flag = true;
    *found += flag;
}
static void test_sanitizers(void)
{
    int found = 0;
    int *const x = (int *)calloc(THREADS, sizeof *x);
    tap_ok(launch(1, THREADS, read_beyond, x, &found), "reading all of an array");
    tap_ok(ends_program([&] { launch(1, THREADS + 1, read_beyond, x, &found); }), "caught: reading beyond an array");
    tap_ok(launch(1, THREADS, write_beyond_shared, THREADS - 1, &found), "writing all of a shared array");
    tap_ok(ends_program([&] { launch(1, THREADS, write_beyond_shared, THREADS, &found); }),
           "caught: writing beyond a shared array");
    shared_bytes = 5 * sizeof(int);
    found = 0;
    tap_ok(launch(3, 1, write_dynamic, 4, &found) && found == -3, "shared memory of the size given at launch, filled anew");
    tap_ok(ends_program([&] { launch(1, 1, write_dynamic, 5, &found); }), "caught: writing beyond it");
    shared_bytes = 0;
    tap_ok(launch(1, 1, read_flag, true, &found), "reading a shared flag that is set");
    tap_ok(ends_program([&] { launch(1, 1, read_flag, false, &found); }), "caught: a shared flag that is not set");
    free(x);
}
#else
static void test_sanitizers(void) { tap_skip("the C++ compiler has no address and undefined-behaviour sanitizers"); }
#endif

int main()
{
    test_right_kernels();
    test_mistakes();
    test_host_threads();
    test_sanitizers();
    return tap_done();
}
