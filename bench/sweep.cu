/* Throw-away: ways to end a fold, timed in one process, in turns. */
#include "kernels/fold.cuh"
#include "kernels/kernels.h"
#include <cooperative_groups.h>
#include <cub/device/device_reduce.cuh>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>
namespace cg = cooperative_groups;
#define CUDA(call) do { const cudaError_t c_ = (cudaError_t)(call); if (c_ != cudaSuccess) { fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(c_)); exit(1); } } while (0)

static cudaStream_t stream;
static char *pool, *flush, *temporary, *cub_out;
static unsigned int *sink;
static struct fold_space space;
static size_t temporary_bytes = 64 << 20;
static int mps;

static __device__ uint64_t random_bits(uint64_t i)
{
    uint64_t z = (i + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}
__global__ void fill(uint32_t *x, uint64_t n, int bits)
{
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < n; i += (uint64_t)gridDim.x * blockDim.x) {
        const float f = (float)((int64_t)(random_bits(i) >> 40) - (1 << 23)) * 0x1p-20f, g = (float)((int64_t)(random_bits(~i) >> 40) - (1 << 23)) * 0x1p-20f;
        const uint32_t a = f32_bits(f), b = f32_bits(g);
        x[i] = bits == 32 ? a : (a & 0xffff0000u) | b >> 16;
    }
}
template <int loads> __global__ void read_all(const uint4 *x, uint64_t n, unsigned int *sink)
{
    uint4 all = make_uint4(0, 0, 0, 0);
    const uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < n; i += loads * stride) {
        uint4 v[loads];
#pragma unroll
        for (int k = 0; k < loads; k++)
            v[k] = i + k * stride < n ? load_read_only(x + i + k * stride) : make_uint4(0, 0, 0, 0);
#pragma unroll
        for (int k = 0; k < loads; k++)
            all = make_uint4(all.x ^ v[k].x, all.y ^ v[k].y, all.z ^ v[k].z, all.w ^ v[k].w);
    }
    if ((all.x ^ all.y ^ all.z ^ all.w) == 0x12345678u)
        *sink = 1;
}
__global__ void nothing() {}
static void clear() { read_all<4><<<mps * 4, 512, 0, stream>>>((const uint4 *)flush, (size_t)240 << 16, sink); }

struct way { std::string name; std::function<void()> run; std::vector<double> us; bool ours; double median() { std::sort(us.begin(), us.end()); return us[us.size() / 2]; } };
static void turns(std::vector<way> &ways, int rounds)
{
    static cudaEvent_t start, stop;
    if (start == NULL) { CUDA(cudaEventCreate(&start)); CUDA(cudaEventCreate(&stop)); }
    for (int round = -2; round < rounds; round++)
        for (size_t k = 0; k < ways.size(); k++) {
            way &w = ways[(k * 7 + (size_t)(round + 2) * 13) % ways.size()];
            float ms;
            clear();
            CUDA(cudaEventRecord(start, stream));
            w.run();
            CUDA(cudaEventRecord(stop, stream));
            CUDA(cudaEventSynchronize(stop));
            CUDA(cudaEventElapsedTime(&ms, start, stop));
            if (round >= 0) w.us.push_back(ms * 1e3);
        }
}

template <int t, int b, int v, int k, bool s> struct plan_of {
    static constexpr bool is_small = s;
    static constexpr int threads = t, blocks = b, vectors = v, together = k, block_vectors = t * v;
};

enum { PREFETCH = 1, LOOPED = 2, WARP = 4, CLUSTER = 8, LAST = 16, WARPS_SEND = 32, QUARTER = 64, ONE = 128, GPU = 256, ROOM32 = 512, ROOM128 = 1024 };
#if PART == 8
static __device__ long long marks[16];
#define MARK(i) do { if (blockIdx.x == 0 && threadIdx.x == 0) marks[i] = clock64(); } while (0)
#else
#define MARK(i) (void)0
#endif

template <class Fold, int threads, int takers> static __device__ __forceinline__ void room_combine(typename Fold::partial *partial)
{
    typedef typename Fold::partial P;
    __shared__ P room[threads];
    room[threadIdx.x] = *partial;
    __syncthreads();
    if (threadIdx.x >= takers) return;
#pragma unroll
    for (int i = 1; i < threads / takers; i++) {
        const P other = room[threadIdx.x + i * takers];
        Fold::combine(partial, &other);
    }
    warp_combine<Fold, 32>(partial);
    if constexpr (takers > 32) {
        __shared__ P few[takers / 32];
        if (threadIdx.x % 32 == 0) few[threadIdx.x / 32] = *partial;
        asm volatile("bar.sync 2, %0;" : : "n"(takers) : "memory");
        if (threadIdx.x >= 32) return;
        *partial = threadIdx.x < takers / 32 ? few[threadIdx.x] : Fold::identity();
        warp_combine<Fold, takers / 32>(partial);
    }
}
template <class Fold, int threads, int variant> static __device__ __forceinline__ void first_combine(typename Fold::partial *partial)
{
    if constexpr ((variant & ROOM32) && threads > 32) room_combine<Fold, threads, 32>(partial);
    else if constexpr ((variant & ROOM128) && threads > 128) room_combine<Fold, threads, 128>(partial);
    else block_combine<Fold, threads>(partial);
}

/* Lane l of a warp takes the messages of blocks l * each + 1 ..., all asked for at once. */
template <class Fold, int most>
static __device__ __forceinline__ void gather_many(typename Fold::partial *partial, const uint64_t *scratch, uint32_t number, uint32_t takers)
{
    typedef typename Fold::partial P;
    constexpr int words = message_words<P>::count;
    P got[most];
    uint32_t missing = 0;
#pragma unroll
    for (int i = 0; i < most; i++) {
        got[i] = Fold::identity();
        const uint32_t block = i * takers + threadIdx.x;
        if (block > 0 && block < gridDim.x) missing |= 1u << i;
    }
    while (missing != 0) {
        uint64_t w[most][4];
#pragma unroll
        for (int i = 0; i < most; i++)
            if (missing >> i & 1) {
                load_words(scratch + (uint64_t)(i * takers + threadIdx.x) * words, w[i]);
                load_words(scratch + (uint64_t)(i * takers + threadIdx.x) * words + 2, w[i] + 2);
            }
#pragma unroll
        for (int i = 0; i < most; i++)
            if ((missing >> i & 1) && w[i][0] >> 32 == number && w[i][1] >> 32 == number && w[i][2] >> 32 == number && w[i][3] >> 32 == number) {
                uint32_t halves[4] = {(uint32_t)w[i][0], (uint32_t)w[i][1], (uint32_t)w[i][2], (uint32_t)w[i][3]};
                memcpy(&got[i], halves, sizeof halves);
                missing &= ~(1u << i);
            }
    }
#pragma unroll
    for (int i = 0; i < most; i++)
        Fold::combine(partial, &got[i]);
}

template <class Fold, class Element, class plan, int variant>
static __global__ void __launch_bounds__(plan::threads, plan::blocks)
try_kernel(const typename Element::stored *x, uint64_t n, uint64_t first, uint64_t rounds, uint64_t *scratch, uint64_t *result, uint32_t number)
{
    typedef typename Fold::partial P;
    constexpr int threads = plan::threads, words = message_words<P>::count;
    if constexpr (variant & PREFETCH)
        if (blockIdx.x == 0)
            for (uint32_t block = threadIdx.x; block < gridDim.x; block += threads)
                asm volatile("prefetch.global.L2 [%0];" : : "l"(scratch + (uint64_t)block * words));
    MARK(0);
    P partial = thread_fold<Fold, Element, plan>(x, n, first, rounds);
    MARK(1);
    if constexpr (variant & ONE) {
        first_combine<Fold, threads, variant>(&partial);
        if (threadIdx.x == 0) message_send(result, partial, number);
        return;
    }
    if constexpr (variant & CLUSTER) {
        __shared__ P room[16];
        cg::cluster_group cluster = cg::this_cluster();
        first_combine<Fold, threads, variant>(&partial);
        if (threadIdx.x == 0) *cluster.map_shared_rank(&room[cluster.block_rank()], 0) = partial;
        cluster.sync();
        if (blockIdx.x > 0 || threadIdx.x >= 32) return;
        partial = threadIdx.x < gridDim.x ? room[threadIdx.x] : Fold::identity();
        warp_combine<Fold, 16>(&partial);
        if (threadIdx.x == 0) message_send(result, partial, number);
        return;
    }
    if constexpr (variant & WARPS_SEND) {
        constexpr int warps = threads / 32;
        warp_combine<Fold, 32>(&partial);
        const uint32_t all = gridDim.x * warps, me = blockIdx.x * warps + threadIdx.x / 32;
        if (threadIdx.x % 32 == 0) message_send(scratch + (uint64_t)me * words, partial, number);
        if (blockIdx.x > 0) return;
        partial = Fold::identity();
        if (all <= 32) {
            if (threadIdx.x >= 32) return;
            if (threadIdx.x < all) partial = message_receive<P>(scratch + (uint64_t)threadIdx.x * words, number);
            warp_combine<Fold, 32>(&partial);
        } else {
#pragma unroll 1
            for (uint32_t i = threadIdx.x; i < all; i += threads) {
                const P other = message_receive<P>(scratch + (uint64_t)i * words, number);
                Fold::combine(&partial, &other);
            }
            block_combine<Fold, threads>(&partial);
        }
        if (threadIdx.x == 0) message_send(result, partial, number);
        return;
    }
    if constexpr (variant & LOOPED) {
#pragma unroll 1
        for (int pass = 0;; pass++) {
            block_combine<Fold, threads>(&partial);
            MARK(2 + 2 * pass);
            if (pass == 1 || gridDim.x == 1) {
                if (threadIdx.x == 0) message_send(result, partial, number);
                return;
            }
            if (blockIdx.x > 0) {
                if (threadIdx.x == 0) message_send(scratch + (uint64_t)blockIdx.x * words, partial, number);
                return;
            }
            if (threadIdx.x > 0) partial = Fold::identity();
#pragma unroll 1
            for (uint32_t block = threadIdx.x > 0 ? threadIdx.x : threads; block < gridDim.x; block += threads) {
                const P other = message_receive<P>(scratch + (uint64_t)block * words, number);
                Fold::combine(&partial, &other);
            }
            __syncthreads();
            MARK(3);
        }
    }
    first_combine<Fold, threads, variant>(&partial);
    MARK(2);
    if (blockIdx.x > 0) {
        if (threadIdx.x == 0) message_send(scratch + (uint64_t)blockIdx.x * words, partial, number);
        return;
    }
    if (gridDim.x > 1) {
        if (threadIdx.x > 0) partial = Fold::identity();
        if constexpr (variant & WARP) {
            if (threadIdx.x >= 32) return;
            if (gridDim.x <= 32) gather_many<Fold, 1>(&partial, scratch, number, 32);
            else if (gridDim.x <= 160) gather_many<Fold, 5>(&partial, scratch, number, 32);
            else gather_many<Fold, 9>(&partial, scratch, number, 32);
            warp_combine<Fold, 32>(&partial);
        } else if constexpr (variant & QUARTER) { /* 128 threads */
            if (threadIdx.x < 128) {
                if (gridDim.x <= 128) gather_many<Fold, 1>(&partial, scratch, number, 128);
                else if (gridDim.x <= 256) gather_many<Fold, 2>(&partial, scratch, number, 128);
                else gather_many<Fold, 5>(&partial, scratch, number, 128);
            }
            __syncthreads();
            if (threadIdx.x >= 128) return;
            __shared__ P four[4];
            warp_combine<Fold, 32>(&partial);
            if (threadIdx.x % 32 == 0) four[threadIdx.x / 32] = partial;
            asm volatile("bar.sync 1, 128;" : : : "memory");
            if (threadIdx.x >= 32) return;
            partial = threadIdx.x < 4 ? four[threadIdx.x] : Fold::identity();
            warp_combine<Fold, 4>(&partial);
        } else {
#pragma unroll 1
            for (uint32_t block = threadIdx.x > 0 ? threadIdx.x : threads; block < gridDim.x; block += threads) {
                const P other = message_receive<P>(scratch + (uint64_t)block * words, number);
                Fold::combine(&partial, &other);
            }
            __syncthreads();
            MARK(3);
            block_combine<Fold, threads>(&partial);
        }
    }
    MARK(4);
    if (threadIdx.x == 0) message_send(result, partial, number);
}

static double expected;
static allfold_type value_type;
template <class Fold, class Element, class plan, int variant> static void add(std::vector<way> &ways, uint64_t n, uint64_t blocks, const char *what)
{
    const uint64_t vectors = n / Element::per_vector;
    if ((variant & ONE) && blocks > 1) return;
    const uint64_t rounds = plan::is_small ? 0 : vectors / (blocks * plan::block_vectors);
    auto *kernel = try_kernel<Fold, Element, plan, variant>;
    if (variant & CLUSTER) CUDA(cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    auto run = [=] {
        cudaLaunchAttribute cluster = {};
        cluster.id = cudaLaunchAttributeClusterDimension;
        cluster.val.clusterDim.x = (unsigned)blocks; cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
        cudaLaunchConfig_t config = {};
        config.gridDim = dim3((unsigned)blocks);
        config.blockDim = dim3(plan::threads);
        config.stream = stream;
        config.attrs = &cluster;
        config.numAttrs = variant & CLUSTER ? 1 : 0;
        space.number++;
        CUDA(cudaLaunchKernelEx(&config, kernel, (const typename Element::stored *)pool, n, (uint64_t)0, rounds,
                                (uint64_t *)space.scratch, (uint64_t *)&space.mailbox->partial, space.number));
    };
    char text[120];
    snprintf(text, sizeof text, "%s %dx%d v%d t%d%s grid %d", what, plan::threads, plan::blocks, plan::vectors, plan::together, plan::is_small ? " small" : "", (int)blocks);
    run();
    struct fold_mailbox box;
    CUDA(cudaMemcpyAsync(&box, space.mailbox, sizeof box, cudaMemcpyDeviceToHost, stream));
    CUDA(cudaStreamSynchronize(stream));
    struct partial partial;
    double value = 0;
    if (!fold_result(&box, space.number, sizeof(typename Fold::partial), &partial)) { printf("NO RESULT %s\n", text); return; }
    memcpy(&value, &partial, 8);
    if (expected != expected) expected = value;
    if (!(std::abs(value - expected) <= 1e-9 * (1 + std::abs(expected)))) { printf("WRONG %s: %.17g %.17g\n", text, value, expected); return; }
    ways.push_back({text, run, {}, true});
}
static void report(const char *name, int power, std::vector<way> &ways)
{
    double best = 1e9, cub = 0, read = 1e9;
    turns(ways, ROUNDS);
    std::sort(ways.begin(), ways.end(), [](way &a, way &b) { return a.median() < b.median(); });
    for (way &w : ways) {
        if (w.name == "cub") cub = w.median();
        if (w.name.compare(0, 4, "read") == 0) read = std::min(read, w.median());
        if (w.ours) best = std::min(best, w.median());
    }
    printf("%s 2^%d cub %.2f read %.2f cub/best %.3f best-read %.2f\n", name, power, cub, read, cub / best, best - read);
    int shown = 0;
    for (way &w : ways) if (shown++ < 14 || w.name.compare(0, 3, "now") == 0) printf("   %.2f %.2f %s\n", w.median(), w.us[w.us.size() / 10], w.name.c_str());
    FILE *file = fopen((std::string(getenv("OUT") ? getenv("OUT") : ".") + "/sweep.txt").c_str(), "a");
    for (way &w : ways) fprintf(file, "%s 2^%d %.2f %.2f %s\n", name, power, w.median(), w.us[w.us.size() / 10], w.name.c_str());
    fclose(file);
}
template <class T, class Sum> static void cub_way(std::vector<way> &ways, bool max, int n)
{
    if (max) ways.push_back({"cub", [=] { CUDA(cub::DeviceReduce::Max(temporary, temporary_bytes, (const T *)pool, (T *)cub_out, n, stream)); }, {}, false});
    else ways.push_back({"cub", [=] { CUDA(cub::DeviceReduce::Reduce(temporary, temporary_bytes, (const T *)pool, (Sum *)cub_out, n, ::cuda::std::plus<Sum>{}, Sum(), stream)); }, {}, false});
}
static void read_ways(std::vector<way> &ways, uint64_t bytes)
{
    for (int threads : {256, 512, 1024})
        for (int per : {1, 2, 4}) {
            if (threads * per > 2048) continue;
            const unsigned g = (unsigned)u64_max(1, u64_min((uint64_t)mps * per, bytes / 16 / threads));
            ways.push_back({"read4", [=] { read_all<4><<<g, threads, 0, stream>>>((const uint4 *)pool, bytes / 16, sink); }, {}, false});
            ways.push_back({"read8", [=] { read_all<8><<<g, threads, 0, stream>>>((const uint4 *)pool, bytes / 16, sink); }, {}, false});
        }
}
static void now_way(std::vector<way> &ways, enum monoid monoid, allfold_type type, uint64_t n)
{
    ways.push_back({"now", [=] { CUDA(fold_launch(monoid, type, pool, n, 0, &space, stream)); }, {}, true});
}

template <class plan> static uint64_t blocks_of(uint64_t vectors, int per, int cap)
{
    return u64_max(1, u64_min((uint64_t)mps * cap, (vectors + plan::threads * per - 1) / (plan::threads * per)));
}
template <class F, class E, class plan, int... variants> static void family(std::vector<way> &ways, uint64_t n, std::initializer_list<int> pers, std::initializer_list<int> caps)
{
    std::vector<uint64_t> tried;
    for (int per : pers) for (int cap : caps) {
        const uint64_t blocks = blocks_of<plan>(n / E::per_vector, per, cap);
        if (std::find(tried.begin(), tried.end(), blocks) != tried.end()) continue;
        tried.push_back(blocks);
        (add<F, E, plan, variants>(ways, n, blocks, ("v" + std::to_string(variants)).c_str()), ...);
    }
}

int main()
{
    CUDA(cudaDeviceGetAttribute(&mps, cudaDevAttrMultiProcessorCount, 0));
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA(cudaMalloc(&pool, (size_t)1 << 30));
    CUDA(cudaMalloc(&flush, (size_t)256 << 20));
    CUDA(cudaMemset(flush, 0x5a, (size_t)256 << 20));
    CUDA(cudaMalloc(&temporary, temporary_bytes));
    CUDA(cudaMalloc(&cub_out, 64));
    CUDA(cudaMalloc(&sink, 4));
    space.multiprocessors = mps;
    const size_t scratch = fold_scratch_bytes(mps) + (1 << 20);
    CUDA(cudaMalloc(&space.scratch, scratch));
    CUDA(cudaMemset(space.scratch, 0, scratch));
    CUDA(cudaMalloc(&space.mailbox, sizeof *space.mailbox));
    CUDA(cudaMemset(space.mailbox, 0, sizeof *space.mailbox));
#if PART <= 3 || PART > 5
    typedef fold_of<MONOID_sum, float> F;
    typedef element<ALLFOLD_F32> E;
    fill<<<mps * 8, 256, 0, stream>>>((uint32_t *)pool, (uint64_t)1 << 28, 32);
#else
    typedef fold_of<PART == 4 ? MONOID_sum : MONOID_max, float> F;
    typedef element<ALLFOLD_BF16> E;
    fill<<<mps * 8, 256, 0, stream>>>((uint32_t *)pool, (uint64_t)1 << 28, 16);
#endif
    CUDA(cudaStreamSynchronize(stream));
#if PART == 8
    for (int power : {12, 14, 16, 20, 22, 24, 26}) {
        std::vector<way> ways;
        const uint64_t n = (uint64_t)1 << power;
        expected = NAN;
        if (power <= 20) family<F, E, plan_of<256, 4, 4, 4, true>, 0, PREFETCH, LOOPED, PREFETCH | LOOPED, PREFETCH | WARP, PREFETCH | ROOM32 | WARP>(ways, n, {4}, {1, 2});
        if (power >= 20) family<F, E, plan_of<512, 2, 8, 4, false>, 0, PREFETCH, LOOPED, PREFETCH | LOOPED, PREFETCH | WARP, PREFETCH | ROOM128 | QUARTER>(ways, n, {4, 8}, {2});
        for (way &w : ways) {
            std::vector<double> d[4];
            for (int i = 0; i < 31; i++) {
                long long m[16] = {0};
                CUDA(cudaMemcpyToSymbol(marks, m, sizeof m));
                clear(); CUDA(cudaStreamSynchronize(stream));
                w.run();
                CUDA(cudaStreamSynchronize(stream));
                CUDA(cudaMemcpyFromSymbol(m, marks, sizeof m));
                for (int k = 0; k < 4; k++) d[k].push_back((double)(m[k + 1] - m[k]));
            }
            printf("2^%d %s: cycles", power, w.name.c_str());
            for (int k = 0; k < 4; k++) { std::sort(d[k].begin(), d[k].end()); printf(" %.0f", d[k][15]); }
            printf("\n");
        }
    }
#elif PART == 1 /* 2^10 .. 2^13, one block or a few */
    for (int power : {10, 11, 12, 13}) {
        std::vector<way> ways;
        const uint64_t n = (uint64_t)1 << power;
        expected = NAN;
        cub_way<float, float>(ways, false, (int)n); read_ways(ways, n * 4); now_way(ways, MONOID_sum, ALLFOLD_F32, n);
        ways.push_back({"nothing", [] { nothing<<<1, 32, 0, stream>>>(); }, {}, false});
#define ALL(t, b, v, k) if ((uint64_t)t * v * 4 >= n) { add<F, E, plan_of<t, b, v, k, true>, ONE>(ways, n, 1, "one"); add<F, E, plan_of<t, b, v, k, true>, ONE | ROOM32>(ways, n, 1, "one room32"); if (t > 128) add<F, E, plan_of<t, b, v, k, true>, ONE | ROOM128>(ways, n, 1, "one room128"); add<F, E, plan_of<t, b, v, k, false>, ONE>(ways, n, 1, "one"); }
        ALL(64, 8, 8, 4) ALL(64, 8, 16, 4) ALL(128, 8, 2, 2) ALL(128, 8, 4, 4) ALL(128, 8, 8, 4) ALL(128, 8, 8, 2) ALL(256, 4, 1, 1) ALL(256, 4, 2, 2) ALL(256, 4, 4, 4) ALL(256, 4, 4, 2) ALL(256, 4, 4, 1) ALL(256, 4, 8, 4) ALL(512, 2, 2, 2) ALL(512, 2, 4, 4) ALL(1024, 1, 1, 1) ALL(1024, 1, 2, 2)
        add<F, E, plan_of<256, 4, 4, 4, true>, 0>(ways, n, 1, "v0"); add<F, E, plan_of<256, 4, 4, 4, true>, LOOPED>(ways, n, 1, "v2");
#define CL(t, v) for (uint64_t blocks : {2, 4, 8}) if (blocks * t * v * 4 >= n && blocks * t * 4 <= n) add<F, E, plan_of<t, 1024 / t, v, v, true>, CLUSTER>(ways, n, blocks, "cluster");
        CL(128, 2) CL(128, 4) CL(256, 1) CL(256, 2) CL(256, 4) CL(512, 1)
        report("sum f32", power, ways);
    }
#elif PART == 2 /* 2^13 .. 2^18 */
    for (int power : {13, 14, 15, 16, 17, 18}) {
        std::vector<way> ways;
        const uint64_t n = (uint64_t)1 << power;
        expected = NAN;
        cub_way<float, float>(ways, false, (int)n); read_ways(ways, n * 4); now_way(ways, MONOID_sum, ALLFOLD_F32, n);
        family<F, E, plan_of<128, 8, 4, 4, true>, 0, PREFETCH, LOOPED, PREFETCH | LOOPED, WARP, PREFETCH | WARP, WARPS_SEND, WARPS_SEND | PREFETCH>(ways, n, {1, 2, 4}, {1});
        family<F, E, plan_of<256, 4, 4, 4, true>, 0, PREFETCH, LOOPED, PREFETCH | LOOPED, WARP, PREFETCH | WARP, WARPS_SEND, WARPS_SEND | PREFETCH>(ways, n, {1, 2, 4}, {1});
        family<F, E, plan_of<512, 2, 4, 4, true>, 0, PREFETCH | LOOPED, PREFETCH | WARP, WARPS_SEND | PREFETCH>(ways, n, {2, 4}, {1});
        family<F, E, plan_of<512, 2, 8, 4, true>, 0, LOOPED, ONE, ONE | ROOM32>(ways, n, {8}, {1});
        family<F, E, plan_of<256, 4, 4, 4, true>, ROOM32 | PREFETCH | WARP, ROOM128 | PREFETCH | QUARTER, ROOM32>(ways, n, {1, 2, 4}, {1});
        family<F, E, plan_of<256, 4, 2, 2, true>, 0, ROOM32 | PREFETCH | WARP, PREFETCH | LOOPED>(ways, n, {1, 2}, {1});
        family<F, E, plan_of<512, 2, 2, 2, true>, 0, ROOM32 | PREFETCH | WARP, PREFETCH | LOOPED>(ways, n, {1, 2}, {1});
#define CL(t, v) for (uint64_t blocks : {2, 4, 8, 16}) if (blocks * t * v * 4 >= n && blocks * t * 4 <= n) add<F, E, plan_of<t, 1024 / t, v, 4, true>, CLUSTER>(ways, n, blocks, "cluster");
        CL(256, 4) CL(512, 4) CL(512, 8) CL(1024, 4)
        report("sum f32", power, ways);
    }
#elif PART == 3 || PART == 6 || PART == 7 /* 2^19 .. 2^26 */
    for (int power : {19, 20, 21, 22, 23, 24, 25, 26}) {
        std::vector<way> ways;
        const uint64_t n = (uint64_t)1 << power;
        expected = NAN;
        if (PART == 7 && power > 22) continue;
        if (PART != 7 && power < 20) continue;
        cub_way<float, float>(ways, false, (int)n); read_ways(ways, n * 4); now_way(ways, MONOID_sum, ALLFOLD_F32, n);
#define LOTS 0, PREFETCH, LOOPED, PREFETCH | LOOPED, WARP, PREFETCH | WARP, PREFETCH | QUARTER, PREFETCH | ROOM32 | WARP, PREFETCH | ROOM128 | QUARTER, PREFETCH | ROOM128 | WARP
#define FEW 0, PREFETCH | LOOPED, PREFETCH | WARP, PREFETCH | ROOM128 | QUARTER
#if PART == 7
        family<F, E, plan_of<256, 4, 4, 4, true>, LOTS>(ways, n, {1, 2, 4}, {1, 2, 4});
        family<F, E, plan_of<512, 2, 4, 4, true>, FEW>(ways, n, {1, 2, 4}, {1, 2});
        family<F, E, plan_of<512, 2, 4, 2, true>, FEW>(ways, n, {2, 4}, {1, 2});
        family<F, E, plan_of<256, 4, 4, 2, true>, FEW>(ways, n, {1, 2, 4}, {1, 2, 4});
        family<F, E, plan_of<128, 8, 4, 4, true>, PREFETCH | LOOPED, PREFETCH | ROOM32 | WARP>(ways, n, {2, 4}, {2, 4, 8});
#elif PART == 3
        family<F, E, plan_of<512, 2, 8, 4, false>, LOTS>(ways, n, {2, 4, 8}, {1, 2});
        family<F, E, plan_of<512, 2, 8, 2, false>, FEW>(ways, n, {4, 8}, {2});
        family<F, E, plan_of<512, 2, 8, 1, false>, FEW>(ways, n, {8}, {2});
        family<F, E, plan_of<512, 2, 4, 2, false>, FEW>(ways, n, {4}, {2});
        family<F, E, plan_of<512, 2, 4, 4, false>, FEW>(ways, n, {4}, {2});
#else
        family<F, E, plan_of<512, 4, 4, 4, false>, FEW>(ways, n, {2, 4}, {2, 4});
        family<F, E, plan_of<512, 4, 4, 2, false>, FEW>(ways, n, {4}, {2, 4});
        family<F, E, plan_of<1024, 1, 8, 4, false>, FEW>(ways, n, {4, 8}, {1});
        family<F, E, plan_of<1024, 2, 4, 4, false>, FEW>(ways, n, {2, 4}, {1, 2});
        family<F, E, plan_of<1024, 2, 4, 2, false>, FEW>(ways, n, {4}, {2});
        family<F, E, plan_of<256, 8, 4, 2, false>, FEW>(ways, n, {4}, {4, 8});
        family<F, E, plan_of<256, 4, 8, 2, false>, FEW>(ways, n, {8}, {2, 4});
#endif
        report("sum f32", power, ways);
    }
#else /* bf16 sum and max */
    for (int power : {24, 26, 28}) {
        std::vector<way> ways;
        const uint64_t n = (uint64_t)1 << power;
        expected = NAN;
        cub_way<__nv_bfloat16, float>(ways, PART == 5, (int)n); read_ways(ways, n * 2);
        now_way(ways, PART == 4 ? MONOID_sum : MONOID_max, ALLFOLD_BF16, n);
        family<F, E, plan_of<512, 3, 4, 2, false>, 0, PREFETCH | LOOPED>(ways, n, {4}, {2, 3});
        family<F, E, plan_of<512, 2, 4, 2, false>, 0, PREFETCH | LOOPED>(ways, n, {4}, {2});
        family<F, E, plan_of<512, 2, 8, 2, false>, 0, PREFETCH | LOOPED>(ways, n, {8}, {1, 2});
        family<F, E, plan_of<512, 4, 4, 2, false>, 0, PREFETCH | LOOPED>(ways, n, {4}, {3, 4});
        family<F, E, plan_of<512, 4, 2, 2, false>, PREFETCH | LOOPED>(ways, n, {4}, {4});
        family<F, E, plan_of<512, 3, 4, 4, false>, PREFETCH | LOOPED>(ways, n, {4}, {3});
        family<F, E, plan_of<512, 3, 4, 1, false>, PREFETCH | LOOPED>(ways, n, {4}, {3});
        family<F, E, plan_of<256, 8, 4, 2, false>, PREFETCH | LOOPED>(ways, n, {4}, {4, 6, 8});
        family<F, E, plan_of<256, 4, 8, 2, false>, PREFETCH | LOOPED>(ways, n, {8}, {2, 4});
        family<F, E, plan_of<256, 5, 8, 2, false>, PREFETCH | LOOPED>(ways, n, {8}, {5});
        family<F, E, plan_of<1024, 1, 8, 2, false>, PREFETCH | LOOPED>(ways, n, {8}, {1});
        family<F, E, plan_of<1024, 2, 4, 2, false>, PREFETCH | LOOPED>(ways, n, {4}, {1, 2});
        family<F, E, plan_of<128, 16, 4, 2, false>, PREFETCH | LOOPED>(ways, n, {4}, {8, 12});
        report(PART == 4 ? "sum bf16" : "max bf16", power, ways);
    }
#endif
    return 0;
}
