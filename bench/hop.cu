/* Throw-away: where the time of a resident softmax goes. */
extern "C" {
#include "device/device.h"
}
#include "kernels/softmax_resident.cu"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>
#define CUDA(call) do { const cudaError_t c_ = (cudaError_t)(call); if (c_ != cudaSuccess) { fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(c_)); exit(1); } } while (0)
static cudaStream_t stream;
static char *flush;
static unsigned int *sink;
static int mps;
static __device__ uint64_t random_bits(uint64_t i)
{
    uint64_t z = (i + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}
__global__ void fill(float *x, uint64_t n)
{
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < n; i += (uint64_t)gridDim.x * blockDim.x)
        x[i] = (float)((int64_t)(random_bits(i) >> 40) - (1 << 23)) * 0x1p-20f;
}
__global__ void read_all(const uint4 *x, uint64_t n, unsigned int *sink)
{
    uint4 all = make_uint4(0, 0, 0, 0);
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < n; i += (uint64_t)gridDim.x * blockDim.x) {
        const uint4 v = __ldg(x + i);
        all = make_uint4(all.x ^ v.x, all.y ^ v.y, all.z ^ v.z, all.w ^ v.w);
    }
    if ((all.x ^ all.y ^ all.z ^ all.w) == 0x12345678u)
        *sink = 1;
}
__global__ void nothing() {}
__global__ void tell(uint64_t *to, uint64_t what) { __threadfence_system(); store_words(to, what, what); }
__global__ void wait_in(const uint64_t *from, uint64_t number, uint64_t *to)
{
    uint64_t words[2];
    do load_words(from, words); while (words[0] != number);
    store_words(to, number, number);
}
static double median(std::vector<double> v) { std::sort(v.begin(), v.end()); return v.empty() ? 0 : v[v.size() / 2]; }
static void clear() { read_all<<<mps * 4, 512, 0, stream>>>((const uint4 *)flush, (size_t)240 << 16, sink); }
static double device_us(const std::function<void()> &run, bool cold = true, int runs = 31)
{
    static cudaEvent_t start, stop;
    if (start == NULL) { CUDA(cudaEventCreate(&start)); CUDA(cudaEventCreate(&stop)); }
    std::vector<double> us;
    for (int i = -2; i < runs; i++) {
        float ms;
        clear();
        CUDA(cudaEventRecord(start, stream));
        run();
        CUDA(cudaEventRecord(stop, stream));
        CUDA(cudaEventSynchronize(stop));
        CUDA(cudaEventElapsedTime(&ms, start, stop));
        if (i >= 0) us.push_back(ms * 1e3);
    }
    return median(us);
}
static bool ended(const struct fold_space *space, const volatile struct fold_mailbox *mailbox, bool *written)
{
#ifdef V_ENDS
    for (uint32_t b = 0; b < space->blocks; b++) {
        const uint64_t w = mailbox->ended[b];
        if (w >> 32 != space->number) return false;
        *written = (uint32_t)w != 0;
    }
    return true;
#else
    return softmax_outcome((const struct fold_mailbox *)mailbox, space->number, written);
#endif
}
int main()
{
    float *x, *y;
    CUDA(cudaDeviceGetAttribute(&mps, cudaDevAttrMultiProcessorCount, 0));
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA(cudaMalloc(&x, (size_t)1 << 26));
    CUDA(cudaMalloc(&y, (size_t)1 << 26));
    CUDA(cudaMalloc(&flush, (size_t)256 << 20));
    CUDA(cudaMalloc(&sink, 4));
    CUDA(cudaMemset(flush, 0x5a, (size_t)256 << 20));
    fill<<<mps * 8, 256, 0, stream>>>(x, (uint64_t)1 << 24);
    CUDA(cudaStreamSynchronize(stream));
    struct fold_mailbox *mailbox;
    struct fold_space space = {};
    space.multiprocessors = mps;
    CUDA(cudaMalloc(&space.scratch, fold_scratch_bytes(mps)));
    CUDA(cudaMemset(space.scratch, 0, fold_scratch_bytes(mps)));
    CUDA(cudaMallocHost(&mailbox, sizeof *mailbox));
    memset(mailbox, 0, sizeof *mailbox);
    space.mailbox = mailbox;
    size_t shared;
    CUDA(softmax_resident_prepare(0, &shared));
#ifdef FLOORS
    {
        uint64_t number = 0;
        std::vector<double> a, b, c, d, e;
        volatile uint64_t *const at = (volatile uint64_t *)mailbox->outcome.words, *const from = (volatile uint64_t *)mailbox->orders.words;
        for (int i = -3; i < 101; i++) {
            clear(); CUDA(cudaStreamSynchronize(stream));
            double t = clock_seconds(), l;
            nothing<<<1, 32, 0, stream>>>(); l = clock_seconds(); CUDA(cudaStreamSynchronize(stream));
            if (i >= 0) { a.push_back((clock_seconds() - t) * 1e6); d.push_back((l - t) * 1e6); }
            clear(); CUDA(cudaStreamSynchronize(stream));
            t = clock_seconds(); number++;
            tell<<<1, 32, 0, stream>>>((uint64_t *)at, number);
            while (*at != number) {}
            if (i >= 0) b.push_back((clock_seconds() - t) * 1e6);
            CUDA(cudaStreamSynchronize(stream));
            number++;
            wait_in<<<1, 1, 0, stream>>>((uint64_t *)from, number, (uint64_t *)at);
            for (t = clock_seconds(); clock_seconds() - t < 40e-6;) {}
            t = clock_seconds();
            *from = number;
            while (*at != number) {}
            if (i >= 0) c.push_back((clock_seconds() - t) * 1e6);
            CUDA(cudaStreamSynchronize(stream));
        }
        printf("floors: launch call %.2f; empty kernel + synchronise %.2f; kernel that tells the host at once %.2f; order to a waiting kernel and its answer %.2f; empty kernel between events %.2f\n",
               median(d), median(a), median(b), median(c), device_us([] { nothing<<<1, 32, 0, stream>>>(); }));
    }
#endif
    for (int power : {10, 14, 18, 20, 21, 22, 23}) {
        const uint64_t n = (uint64_t)1 << power;
        struct softmax_resident call = {&space, shared, false, false, ALLFOLD_F32, x, y, n};
        if (!softmax_resident_fits(&call)) { printf("2^%d does not fit\n", power); continue; }
        std::vector<double> at[5], alone;
        double t[5];
        bool written = false;
        for (int i = -3; i < 41; i++) {
            struct partial partial;
            struct softmax_constants constants;
            clear();
            CUDA(cudaStreamSynchronize(stream));
            call.alone = false;
            t[0] = clock_seconds();
            CUDA(softmax_resident_launch(&call, stream));
            t[1] = clock_seconds();
            while (!fold_result(mailbox, space.number, monoid_bytes(MONOID_sumexp, ALLFOLD_F32), &partial)) {}
            t[2] = clock_seconds();
            softmax_constants_set(MONOID_sumexp, ALLFOLD_F32, &partial, &constants);
            softmax_order(mailbox, space.number, &constants);
            t[3] = clock_seconds();
            while (!ended(&space, mailbox, &written)) {}
            t[4] = clock_seconds();
            if (!written) puts("NOT WRITTEN");
            for (int k = 1; i >= 0 && k < 5; k++) at[k].push_back((t[k] - t[k - 1]) * 1e6);
            clear();
            CUDA(cudaStreamSynchronize(stream));
            call.alone = true;
            t[0] = clock_seconds();
            CUDA(softmax_resident_launch(&call, stream));
            while (!ended(&space, mailbox, &written)) {}
            if (i >= 0) alone.push_back((clock_seconds() - t[0]) * 1e6);
        }
        const double total = median(at[1]) + median(at[2]) + median(at[3]) + median(at[4]);
        printf("2^%d: host alone %.2f | through the host %.2f: launch %.2f partial +%.2f constants +%.2f outcome +%.2f", power, median(alone), total, median(at[1]), median(at[2]), median(at[3]), median(at[4]));
        call.alone = true;
#ifdef V_TIMES
        {
            static const char *const names[] = {"load+fold", "combine", "gather", "combine", "constants", "write", "others", "fence", "tell"};
            std::vector<double> d[9];
            for (int i = 0; i < 31; i++) {
                long long m[16];
                clear(); CUDA(cudaStreamSynchronize(stream));
                CUDA(softmax_resident_launch(&call, stream));
                CUDA(cudaStreamSynchronize(stream));
                CUDA(cudaMemcpyFromSymbol(m, marks, sizeof m));
                for (int k = 0; k < 9; k++) d[k].push_back((double)(m[k + 1] - m[k]));
            }
            printf(" | cycles:");
            for (int k = 0; k < 9; k++) printf(" %s %.0f", names[k], median(d[k]));
        }
#endif
        printf(" | device alone %.2f", device_us([&] { CUDA(softmax_resident_launch(&call, stream)); }));
        printf(" sumexp %.2f copy %.2f goal %.2f\n", device_us([&] { CUDA(fold_launch(MONOID_sumexp, ALLFOLD_F32, x, n, 0, &space, stream)); }),
               device_us([&] { CUDA(cudaMemcpyAsync(y, x, n * 4, cudaMemcpyDeviceToDevice, stream)); }), 1.15 * 8.0 * (double)n / 4.29e6 + 12);
    }
    return 0;
}
