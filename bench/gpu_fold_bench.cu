/* Benchmark of the GPU kernels on one device, without MPI: sum and max against CUB and against the fastest plain read,
   and softmax's two passes against the ceilings of reading and copying. One process, random data made on the device,
   peers taking turns, the second-level cache cleared before each run, medians, every result checked.

       bench/gpu_fold_bench [seconds at most, default 80] >table    prints a table, then one JSON line a result

   "device" times are between CUDA events, "host" times from the call until the host holds the number. */
extern "C" {
#include "device/device.h"
}
#include "fold/exponential.h"
#include "kernels/kernels.h"

#include "gpu_data.cuh"

#include <cub/device/device_reduce.cuh>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

enum { WARM_UP = 3, RUNS = 41, RUNS_TO_CHOOSE = 5 };
constexpr size_t FLUSH_BYTES = (size_t)256 << 20;
constexpr size_t POOL_BYTES = (size_t)8 << 30;

#define CUDA(call)                                                                                              \
    do {                                                                                                        \
        const cudaError_t code_ = (cudaError_t)(call);                                                          \
        if (code_ != cudaSuccess) {                                                                             \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(code_));           \
            exit(1);                                                                                            \
        }                                                                                                       \
    } while (0)

/* The read kernels: threads of a block, blocks of a multiprocessor, loads in flight. */
struct read_shape {
    int threads, blocks, flight;
};

/* One of several that take turns. run ends with a synchronisation where host is set. */
struct peer {
    const char *name;
    bool host;
    std::function<void()> run;
    std::function<bool()> check;
    std::vector<double> us;
    bool ok;
    double at(double quantile) const
    {
        std::vector<double> sorted = us;
        std::sort(sorted.begin(), sorted.end());
        return sorted[(size_t)(quantile * (double)(sorted.size() - 1) + 0.5)];
    }
};

struct bench {
    double deadline;
    int multiprocessors;
    cudaStream_t stream;
    cudaEvent_t start, stop;
    char *pool, *flush, *out;
    unsigned int *sink;
    struct fold_space space;
    struct partial *partial;
    const struct backend *backend;
    struct device *device;
    struct queue *queue;
    std::map<uint64_t, read_shape> reads; /* the fastest, by bytes */
    std::vector<std::string> json;
    bool all_ok;
};

static void clear_cache(const bench &b)
{
    read_all<4><<<b.multiprocessors * 4, 512, 0, b.stream>>>((const uint4 *)b.flush, FLUSH_BYTES / 16, b.sink);
}

static void time_once(const bench &b, peer &p, bool keep)
{
    float ms;
    clear_cache(b);
    if (p.host) {
        CUDA(cudaStreamSynchronize(b.stream));
        const double before = clock_seconds();
        p.run();
        ms = (float)((clock_seconds() - before) * 1e3);
    } else {
        CUDA(cudaEventRecord(b.start, b.stream));
        p.run();
        CUDA(cudaEventRecord(b.stop, b.stream));
        CUDA(cudaEventSynchronize(b.stop));
        CUDA(cudaEventElapsedTime(&ms, b.start, b.stop));
    }
    if (keep)
        p.us.push_back(ms * 1e3);
}

static void take_turns(bench &b, std::vector<peer> &peers, int runs)
{
    for (int run = -WARM_UP; run < runs; run++)
        for (size_t i = 0; i < peers.size(); i++)
            time_once(b, peers[(i + (size_t)(run + WARM_UP)) % peers.size()], run >= 0);
    for (peer &p : peers) {
        p.run();
        CUDA(cudaStreamSynchronize(b.stream));
        p.ok = !p.check || p.check();
        b.all_ok = b.all_ok && p.ok;
    }
}

static void note(bench &b, const char *what, const char *type, uint64_t n, uint64_t bytes, const peer &p)
{
    char line[400];
    const double median = p.at(0.5);
    snprintf(line, sizeof line,
             "{\"what\": \"%s\", \"type\": \"%s\", \"n\": %llu, \"peer\": \"%s\", \"seen\": \"%s\", \"median_us\": %.3f, "
             "\"p99_us\": %.3f, \"best_us\": %.3f, \"runs\": %zu, \"bytes\": %llu, \"gb_per_s\": %.1f, \"ok\": %s}",
             what, type, (unsigned long long)n, p.name, p.host ? "host" : "device", median, p.at(0.99), p.at(0.0),
             p.us.size(), (unsigned long long)bytes, (double)bytes / median / 1e3, p.ok ? "true" : "false");
    b.json.push_back(line);
}

static void run_read(const bench &b, const read_shape &s, uint64_t bytes)
{
    const uint64_t n = bytes / 16, wanted = (n + s.threads - 1) / s.threads;
    const unsigned int grid = (unsigned int)u64_max(1, u64_min(wanted, (uint64_t)b.multiprocessors * s.blocks));
    if (s.flight == 4)
        read_all<4><<<grid, s.threads, 0, b.stream>>>((const uint4 *)b.pool, n, b.sink);
    else
        read_all<8><<<grid, s.threads, 0, b.stream>>>((const uint4 *)b.pool, n, b.sink);
}

static read_shape fastest_read(bench &b, uint64_t bytes)
{
    read_shape best = {};
    double best_us = 1e30;
    for (int threads : {256, 512, 1024})
        for (int blocks : {1, 2, 4, 8, 16, 32})
            for (int flight : {4, 8}) {
                const read_shape shape = {threads, blocks, flight};
                peer p = {"", false, [&] { run_read(b, shape, bytes); }, nullptr, {}, true};
                for (int run = 0; run <= RUNS_TO_CHOOSE; run++)
                    time_once(b, p, run > 0);
                if (p.at(0.5) < best_us) {
                    best_us = p.at(0.5);
                    best = shape;
                }
            }
    return best;
}

/* The fastest read of so many bytes, as a peer. */
static peer read_peer(bench &b, uint64_t bytes)
{
    if (b.reads.count(bytes) == 0)
        b.reads[bytes] = fastest_read(b, bytes);
    const read_shape best = b.reads[bytes];
    return {"read", false, [&b, best, bytes] { run_read(b, best, bytes); }, nullptr, {}, true};
}

static double finished(allfold_fold fold, allfold_type type, const struct partial *partial, uint64_t n)
{
    allfold_result result;
    struct error error = {};
    if (fold_finish(fold, type, partial, n, ALLFOLD_NAN_PROPAGATE, &result, &error) != ALLFOLD_OK) {
        printf("  %s\n", error.text);
        return NAN;
    }
    return allfold_number(result.fields[0].value);
}

static void must(allfold_status status, const struct error &error)
{
    if (status != ALLFOLD_OK) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
}

template <class T> static known known_of(const bench &b, uint64_t n)
{
    known host = {0, 0, INT64_MIN}, *device;
    CUDA(cudaMalloc(&device, sizeof host));
    CUDA(cudaMemcpy(device, &host, sizeof host, cudaMemcpyHostToDevice));
    CUDA(cudaDeviceSynchronize()); /* b.stream waits for no other */
    find_known<T><<<b.multiprocessors * 8, 256, 0, b.stream>>>(n, device);
    CUDA(cudaGetLastError());
    CUDA(cudaStreamSynchronize(b.stream));
    CUDA(cudaMemcpy(&host, device, sizeof host, cudaMemcpyDeviceToHost));
    CUDA(cudaFree(device));
    return host;
}

/* CUB's sum or max; out is device memory. Sums of bf16 are asked for in f32: by itself CUB would add them in bf16. */
template <class T, class Out>
static cudaError_t cub_fold(bool max, void *temporary, size_t &bytes, const T *x, Out *out, int n, cudaStream_t stream)
{
    if constexpr (!std::is_same<T, Out>::value) {
        return cub::DeviceReduce::Reduce(temporary, bytes, x, out, n, ::cuda::std::plus<Out>(), Out(), stream);
    } else {
        if (max)
            return cub::DeviceReduce::Max(temporary, bytes, x, out, n, stream);
        return cub::DeviceReduce::Sum(temporary, bytes, x, out, n, stream);
    }
}

template <class T, class Out> static void bench_fold(bench &b, bool max, uint64_t n)
{
    const allfold_type type = data<T>::type;
    const allfold_fold fold = max ? ALLFOLD_MAX : ALLFOLD_SUM;
    const enum monoid monoid = fold_monoid(fold);
    const uint64_t bytes = n * sizeof(T);
    const T *const x = (const T *)b.pool;
    const known known = known_of<T>(b, n);
    const long double steps = (long double)(int64_t)known.high * 4294967296.0L + (long double)(int64_t)known.low;
    const long double expected = (max ? (long double)known.max : steps) * data<T>::step;

    Out *cub_out, *cub_host;
    void *temporary = nullptr;
    size_t temporary_bytes = 0;
    CUDA(cudaMalloc(&cub_out, sizeof(Out)));
    CUDA(cudaMallocHost(&cub_host, sizeof(Out)));
    CUDA((cub_fold<T, Out>(max, nullptr, temporary_bytes, x, cub_out, (int)n, b.stream)));
    CUDA(cudaMalloc(&temporary, temporary_bytes));

    const double loose = type == ALLFOLD_INT32 || max ? 0.0 : 1e-5 * (double)n; /* CUB adds f32 in f32 */
    const long double tight = 1e-15L * std::abs(expected) + (type == ALLFOLD_F64 ? 1e-18L * n : 0.0L);
    const auto close = [=](double found) { return std::abs((long double)found - expected) <= tight; };
    const auto cub_close = [=] {
        Out found;
        CUDA(cudaMemcpy(&found, cub_out, sizeof found, cudaMemcpyDeviceToHost));
        if (type == ALLFOLD_INT32 && !max) /* wraps */
            return (uint32_t)(int64_t)(double)found == (uint32_t)(int64_t)expected;
        return std::abs((long double)(double)found - expected) <= loose;
    };
    std::vector<peer> peers;
    peers.push_back({"allfold", false, [&] { CUDA(fold_launch(monoid, type, x, n, 0, &b.space, b.stream)); },
                     [&] { return close(finished(fold, type, b.partial, n)); }, {}, false});
    const auto cub_run = [&] {
        CUDA((cub_fold<T, Out>(max, temporary, temporary_bytes, x, cub_out, (int)n, b.stream)));
    };
    peers.push_back({"cub", false, cub_run, cub_close, {}, false});
    peers.push_back(read_peer(b, bytes));
    peers.push_back({"allfold", true,
                     [&] {
                         struct error error = {};
                         must(b.backend->fold(b.queue, monoid, type, x, n, 0, &error), error);
                         must(b.backend->wait(b.queue, &error), error);
                     },
                     [&] { return close(finished(fold, type, b.queue->partial, n)); }, {}, false});
    peers.push_back({"cub", true,
                     [&] {
                         cub_run();
                         CUDA(cudaMemcpyAsync(cub_host, cub_out, sizeof(Out), cudaMemcpyDeviceToHost, b.stream));
                         CUDA(cudaStreamSynchronize(b.stream));
                     },
                     cub_close, {}, false});
    take_turns(b, peers, RUNS);
    bool ok = true;
    for (const peer &p : peers) {
        note(b, max ? "max" : "sum", allfold_type_name(type), n, bytes, p);
        ok = ok && p.ok;
    }
    printf("%-4s %-6s 2^%-3d %10.2f %10.2f %10.2f %8.0f %8.2f %8.3f %11.2f %10.2f %8.2f  %s\n", max ? "max" : "sum",
           allfold_type_name(type), (int)log2((double)n), peers[0].at(0.5), peers[1].at(0.5), peers[2].at(0.5),
           (double)bytes / peers[0].at(0.5) / 1e3, peers[1].at(0.5) / peers[0].at(0.5),
           peers[2].at(0.5) / peers[0].at(0.5), peers[3].at(0.5), peers[4].at(0.5), peers[4].at(0.5) / peers[3].at(0.5),
           ok ? "ok" : "WRONG");
    CUDA(cudaFree(temporary));
    CUDA(cudaFree(cub_out));
    CUDA(cudaFreeHost(cub_host));
}

template <class T> static void bench_type(bench &b)
{
    fill<T><<<b.multiprocessors * 8, 256, 0, b.stream>>>((T *)b.pool, (uint64_t)1 << 30);
    CUDA(cudaGetLastError());
    for (int power : {28, 12, 14, 16, 18, 20, 22, 24, 26, 30})
        for (bool max : {false, true}) {
            const uint64_t n = (uint64_t)1 << power;
            if (clock_seconds() > b.deadline)
                printf("%-4s %-6s 2^%-3d out of time\n", max ? "max" : "sum", allfold_type_name(data<T>::type), power);
            else if (max)
                bench_fold<T, T>(b, true, n);
            else
                bench_fold<T, typename data<T>::cub_sum>(b, false, n);
        }
}

/* Softmax of f32 to f32 over n elements. */
static void bench_softmax(bench &b, uint64_t n)
{
    const float *const x = (const float *)b.pool;
    float *const y = (float *)b.out;
    const uint64_t bytes = n * sizeof(float);
    struct softmax_constants constants;
    double *plain, plain_sum = 0;
    CUDA(fold_launch(MONOID_sumexp, ALLFOLD_F32, x, n, 0, &b.space, b.stream));
    CUDA(cudaStreamSynchronize(b.stream));
    softmax_constants_set(b.partial, &constants);
    CUDA(cudaMalloc(&plain, sizeof *plain));
    CUDA(cudaMemset(plain, 0, sizeof *plain));
    CUDA(cudaDeviceSynchronize());
    plain_sumexp<<<b.multiprocessors * 8, 256, 0, b.stream>>>(x, n, constants.max, plain);
    CUDA(cudaStreamSynchronize(b.stream));
    CUDA(cudaMemcpy(&plain_sum, plain, sizeof plain_sum, cudaMemcpyDeviceToHost));
    CUDA(cudaFree(plain));

    const auto sums_to_one = [&] {
        CUDA(fold_launch(MONOID_sum, ALLFOLD_F32, y, n, 0, &b.space, b.stream));
        CUDA(cudaStreamSynchronize(b.stream));
        const bool one = std::abs(finished(ALLFOLD_SUM, ALLFOLD_F32, b.partial, n) - 1.0) <= 1e-6;
        CUDA(cudaMemset(y, 0xff, bytes)); /* the next must write its own */
        CUDA(cudaDeviceSynchronize());
        return one;
    };
    std::vector<peer> peers;
    peers.push_back({"sumexp", false,
                     [&] { CUDA(fold_launch(MONOID_sumexp, ALLFOLD_F32, x, n, 0, &b.space, b.stream)); },
                     [&] {
                         struct softmax_constants found;
                         softmax_constants_set(b.partial, &found);
                         return std::abs(found.inverse_high * plain_sum - 1.0) <= 1e-6;
                     },
                     {}, false});
    peers.push_back({"normalise", false,
                     [&] {
                         CUDA(softmax_launch(&constants, false, ALLFOLD_F32, x, ALLFOLD_F32, y, n, b.multiprocessors,
                                             b.stream));
                     },
                     sums_to_one, {}, false});
    peers.push_back(read_peer(b, bytes));
    peers.push_back({"copy", false,
                     [&] { CUDA(cudaMemcpyAsync(y, x, bytes, cudaMemcpyDeviceToDevice, b.stream)); },
                     nullptr, {}, false});
    peers.push_back({"softmax", true,
                     [&] {
                         struct error error = {};
                         struct softmax_constants found;
                         must(b.backend->fold(b.queue, MONOID_sumexp, ALLFOLD_F32, x, n, 0, &error), error);
                         must(b.backend->wait(b.queue, &error), error);
                         softmax_constants_set(b.queue->partial, &found);
                         must(b.backend->softmax(b.queue, &found, false, ALLFOLD_F32, x, ALLFOLD_F32, y, n, &error),
                              error);
                         must(b.backend->wait(b.queue, &error), error);
                     },
                     sums_to_one, {}, false});
    take_turns(b, peers, RUNS);
    bool ok = true;
    for (const peer &p : peers) {
        const bool twice = p.name[0] == 'n' || p.name[0] == 'c';
        note(b, "softmax", "f32", n, p.name == std::string("softmax") ? 3 * bytes : twice ? 2 * bytes : bytes, p);
        ok = ok && p.ok;
    }
    printf("softmax f32 2^%-3d %10.2f %10.2f %8.3f %10.2f %10.2f %8.3f %12.2f %8.3f  %s\n", (int)log2((double)n),
           peers[0].at(0.5), peers[2].at(0.5), peers[2].at(0.5) / peers[0].at(0.5), peers[1].at(0.5), peers[3].at(0.5),
           peers[3].at(0.5) / peers[1].at(0.5), peers[4].at(0.5),
           (peers[2].at(0.5) + peers[3].at(0.5)) / peers[4].at(0.5), ok ? "ok" : "WRONG");
}

static void bench_latency(bench &b)
{
    std::vector<peer> peers;
    peers.push_back({"empty kernel", true,
                     [&] {
                         nothing<<<1, 32, 0, b.stream>>>();
                         CUDA(cudaStreamSynchronize(b.stream));
                     },
                     nullptr, {}, false});
    peers.push_back({"empty kernel", false, [&] { nothing<<<1, 32, 0, b.stream>>>(); }, nullptr, {}, false});
    take_turns(b, peers, RUNS);
    for (const peer &p : peers)
        note(b, "latency", "-", 0, 0, p);
    printf("empty kernel and synchronise, from the host: %.2f us; between events: %.2f us\n\n", peers[0].at(0.5),
           peers[1].at(0.5));
}

static void open(bench &b)
{
    allfold_options options = {};
    struct device_info info;
    struct error error = {};
    b.backend = &backend_cuda;
    must(b.backend->open(0, 1, &options, &b.device, &error), error);
    must(b.backend->queue_open(b.device, 0, &b.queue, &error), error);
    b.backend->describe(b.device, &info);
    CUDA(cudaDeviceGetAttribute(&b.multiprocessors, cudaDevAttrMultiProcessorCount, info.index));
    printf("%s, %d multiprocessors, %s, PCI %s, NUMA node %d, %.1f GB\n", info.name, b.multiprocessors, info.uuid,
           info.pci, info.numa_node, (double)info.memory_total / 1e9);
    CUDA(cudaStreamCreateWithFlags(&b.stream, cudaStreamNonBlocking));
    CUDA(cudaEventCreate(&b.start));
    CUDA(cudaEventCreate(&b.stop));
    CUDA(cudaMalloc(&b.pool, POOL_BYTES));
    CUDA(cudaMalloc(&b.out, POOL_BYTES / 2));
    CUDA(cudaMalloc(&b.flush, FLUSH_BYTES));
    CUDA(cudaMemset(b.flush, 0x5a, FLUSH_BYTES));
    CUDA(cudaMalloc(&b.sink, sizeof *b.sink));
    b.space.multiprocessors = b.multiprocessors;
    CUDA(cudaMalloc(&b.space.scratch, fold_scratch_bytes(b.multiprocessors)));
    CUDA(cudaMemset(b.space.scratch, 0, fold_scratch_bytes(b.multiprocessors)));
    CUDA(cudaHostAlloc(&b.partial, sizeof *b.partial, cudaHostAllocMapped));
    CUDA(cudaHostGetDevicePointer(&b.space.result, b.partial, 0));
    CUDA(cudaDeviceSynchronize());
    b.all_ok = true;
}

int main(int argc, char **argv)
{
    static bench b;
    b.deadline = clock_seconds() + (argc > 1 ? atof(argv[1]) : 80.0);
    setvbuf(stdout, nullptr, _IOLBF, 0);
    open(b);
    bench_latency(b);
    fill<float><<<b.multiprocessors * 8, 256, 0, b.stream>>>((float *)b.pool, (uint64_t)1 << 30);
    CUDA(cudaGetLastError());
    printf("                  sumexp us    read us   of read normalise      copy us  of copy  whole, host  of both\n");
    for (int power : {28, 12, 16, 20, 22, 24, 26, 30})
        if (clock_seconds() < b.deadline)
            bench_softmax(b, (uint64_t)1 << power);
    printf("\nfold type   n        us      CUB us    read us     GB/s  CUB/us  read/us     host us  CUB+copy   ratio\n");
    bench_type<float>(b);
    bench_type<__nv_bfloat16>(b);
    bench_type<double>(b);
    bench_type<int32_t>(b);
    for (const std::string &line : b.json)
        puts(line.c_str());
    b.backend->queue_close(b.queue);
    b.backend->close(b.device);
    printf("%s\n", b.all_ok ? "all results right" : "SOME RESULTS WRONG");
    return b.all_ok ? 0 : 1;
}
