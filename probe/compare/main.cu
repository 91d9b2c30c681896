// Times comparisons, old and new kernels in several shapes, and compares what they find.
#include "kernels/kernels.h"
#include "kernels/message.cuh"
#include "kernels/ptx.cuh"
#include "fold/folds.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <algorithm>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define CHECK(x) do { cudaError_t c_ = (cudaError_t)(x); if (c_) { printf("%s: %s\n", #x, cudaGetErrorString(c_)); fflush(stdout); exit(1); } } while (0)
typedef int launch_fn(const struct work *, const struct fold_space *, void *);
#define V(name) extern "C" launch_fn name##_launch;
VARIANTS
#undef V
struct variant { const char *name; launch_fn *launch; };
static variant variants[] = {
#define V(name) {#name, name##_launch},
VARIANTS
#undef V
};
__device__ uint64_t mix(uint64_t x) { x ^= x >> 33; x *= 0xff51afd7ed558ccdull; x ^= x >> 33; x *= 0xc4ceb9fe1a85ec53ull; return x ^ x >> 33; }
__device__ float uni(uint64_t k) { return ((mix(k) >> 40) + 0.5f) * 0x1p-24f; }
__device__ float nor(uint64_t k) { return sqrtf(-2 * logf(uni(2 * k))) * cospif(2 * uni(2 * k + 1)); }
template <class T> __device__ T to(float x);
template <> __device__ float to(float x) { return x; }
template <> __device__ __nv_bfloat16 to(float x) { return __float2bfloat16(x); }
template <> __device__ __half to(float x) { return __float2half(x); }
__device__ float up(float x, int k) { return __int_as_float(__float_as_int(x) + k); }
template <class T> __device__ T step(T x, int k);
template <> __device__ float step(float x, int k) { return up(x, k); }
template <> __device__ __nv_bfloat16 step(__nv_bfloat16 x, int k) { return __ushort_as_bfloat16(__bfloat16_as_ushort(x) + k); }
template <> __device__ __half step(__half x, int k) { return __ushort_as_half(__half_as_ushort(x) + k); }
enum { KINDS = 12 };
const char *kinds[KINDS] = {"equal", "1/1000", "ulps 0..2", "+1e-3 normal", "unrelated", "+1", "negated", "wide", "nan 1/1000", "masks", "b half 0", "unrelated adam"};
template <class T> __global__ void fill(T *a, T *b, uint64_t n, int kind)
{
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < n; i += (uint64_t)gridDim.x * blockDim.x) {
        float x = nor(i), r = uni(i + (1ull << 50)), z = nor(i + (1ull << 44));
        T t = to<T>(x), u = t;
        switch (kind) {
        case 1: if (r < 0.001f) u = to<T>(x * 1.01f); break;
        case 2: u = step(t, (int)(r * 3)); break;
        case 3: u = to<T>(x + 1e-3f * z); break;
        case 4: u = to<T>(z); break;
        case 5: u = to<T>((float)t + 1.0f); break;
        case 6: u = to<T>(-(float)t); break;
        case 7: x *= exp2f(-60 * r); t = to<T>(x); u = to<T>(x * (1 + 1e-3f * z)); break;
        case 8: if (r < 0.001f) u = to<T>(NAN); break;
        case 9: t = to<T>(x > 0 ? 1.0f : 0.0f); u = to<T>(z > 0 ? 1.0f : 0.0f); break;
        case 10: if (r < 0.5f) u = to<T>(0.0f); break;
        case 11: t = to<T>(x * x * exp2f(-30 - 8 * r)); u = to<T>((float)t * (1 + 0.01f * z)); break;
        }
        a[i] = t, b[i] = u;
    }
}
__global__ void __launch_bounds__(512, 2) read_both(const uint4 *a, const uint4 *b, uint64_t n, uint32_t *to)
{
    uint32_t all = 0;
    for (uint64_t i = blockIdx.x * 1024ull + threadIdx.x; i + 512 < n; i += gridDim.x * 1024ull) {
        uint4 v[4] = {load_read_only(a + i), load_read_only(a + i + 512), load_read_only(b + i), load_read_only(b + i + 512)};
        for (int k = 0; k < 4; k++) all += v[k].x ^ v[k].y ^ v[k].z ^ v[k].w;
    }
    if (all == 12345) *to = all;
}
static char *arrays[2]; static fold_space space; static cudaEvent_t e0, e1;
static float timed(launch_fn *launch, const work *w, int runs)
{
    std::vector<float> ms;
    for (int r = 0; r < runs; r++) {
        space.launch_id++;
        CHECK(cudaEventRecord(e0)); CHECK(launch(w, &space, 0)); CHECK(cudaEventRecord(e1)); CHECK(cudaEventSynchronize(e1));
        float t; CHECK(cudaEventElapsedTime(&t, e0, e1)); ms.push_back(t * 1000);
    }
    std::sort(ms.begin(), ms.end());
    return ms[ms.size() / 2];
}
static compare_f32 taken()
{
    static fold_message message; compare_f32 c; memset(&c, 0, sizeof c);
    CHECK(cudaMemcpy(&message, &space.mailbox->partial, sizeof message, cudaMemcpyDeviceToHost));
    if (!message_take(&message, space.launch_id, &c, sizeof c)) printf("NO RESULT\n");
    compare_normalise_f32(&c);
    return c;
}
static void show(const compare_f32 &c)
{
    for (int i = 0; i < compare_sum_words_f32; i++) printf(" %llx", (long long)c.sum.words[i]);
    printf(" |"); for (int i = 0; i < compare_squares_words_f32; i++) printf(" %llx", (long long)c.squares.words[i]);
    printf(" | %llu %llu %llu %llu %llu", (long long)c.ends.different, (long long)c.ends.outside, (long long)c.ends.nan_a, (long long)c.ends.nan_b, (long long)c.ends.nan_both);
    for (int i = 0; i < 3; i++) printf(" (%llx %llu)", (long long)c.ends.largest[i].key, (long long)c.ends.largest[i].index);
    printf("\n");
}
int main(int argc, char **argv)
{
    const int log2n = argc > 1 ? atoi(argv[1]) : 28;
    cudaDeviceProp prop; CHECK(cudaGetDeviceProperties(&prop, 0));
    const uint64_t n = 1ull << log2n;
    for (int i = 0; i < 2; i++) CHECK(cudaMalloc(&arrays[i], n * 4 + 64));
    space.multiprocessors = prop.multiProcessorCount;
    CHECK(cudaMalloc(&space.scratch, 64 << 20)); CHECK(cudaMemset(space.scratch, 0, 64 << 20));
    CHECK(cudaMalloc(&space.mailbox, sizeof *space.mailbox)); CHECK(cudaMemset(space.mailbox, 0, sizeof *space.mailbox));
    CHECK(cudaEventCreate(&e0)); CHECK(cudaEventCreate(&e1));
    printf("%s, %d multiprocessors, n 2^%d\n", prop.name, space.multiprocessors, log2n);
    const allfold_type types[] = {ALLFOLD_F32, ALLFOLD_BF16, ALLFOLD_F16};
    const int count = sizeof variants / sizeof *variants;
    int wrong = 0;
    for (int t = 0; t < 3; t++) {
        const int bytes = t == 0 ? 4 : 2;
        for (int kind = 0; kind < KINDS; kind++) {
            if (t == 0) fill<<<4096, 256>>>((float *)arrays[0], (float *)arrays[1], n, kind);
            if (t == 1) fill<<<4096, 256>>>((__nv_bfloat16 *)arrays[0], (__nv_bfloat16 *)arrays[1], n, kind);
            if (t == 2) fill<<<4096, 256>>>((__half *)arrays[0], (__half *)arrays[1], n, kind);
            CHECK(cudaDeviceSynchronize());
            for (int allow = 0; allow < 2; allow++) {
                if (allow == 1 && !(kind >= 2 && kind <= 4)) continue;
                compare_rule rule; memset(&rule, 0, sizeof rule); rule.ulp = types[t];
                if (allow) rule.atol = 1e-8, rule.rtol = t == 0 ? 1e-5 : 1e-2;
                if (kind == 0) {
                    std::vector<float> ms;
                    for (int r = 0; r < 11; r++) { cudaEventRecord(e0); read_both<<<space.multiprocessors * 2, 512>>>((uint4 *)arrays[0], (uint4 *)arrays[1], n * bytes / 16, (uint32_t *)space.scratch + 1000000); cudaEventRecord(e1); cudaEventSynchronize(e1); float x; cudaEventElapsedTime(&x, e0, e1); ms.push_back(x * 1000); }
                    std::sort(ms.begin(), ms.end()); printf("%s read both %.0f us\n", allfold_type_name(types[t]), ms[5]);
                }
                printf("%-5s %-13s %s", allfold_type_name(types[t]), kinds[kind], allow ? "rtol" : "    ");
                compare_f32 of[64];
                for (int v = 0; v < count; v++) {
                    const work w = {MONOID_compare, types[t], arrays[0], n, 0, arrays[1], &rule};
                    if (t != 0 && strstr(variants[v].name, "_")) { of[v] = of[0]; continue; }
                    timed(variants[v].launch, &w, 1);
                    printf(" %s %.0f", variants[v].name, timed(variants[v].launch, &w, 5)); fflush(stdout);
                    of[v] = taken();
                }
                printf("\n");
                for (int v = 1; v < count; v++)
                    if (memcmp(&of[v], &of[0], sizeof of[0]) != 0 && !strstr(variants[v].name, "no")) { wrong++; if (wrong < 12) { printf("DIFFERENT %s\n", variants[v].name); show(of[0]); show(of[v]); } }
                compare_f32 first; // lengths and alignments
                for (uint64_t m : {uint64_t(1), uint64_t(3), uint64_t(1000), uint64_t(70001), n / 3 + 5})
                    for (int off = 0; off < 2; off++)
                        for (int v = 0; v < count; v++) {
                            if (strstr(variants[v].name, "no") || (v > 1 && m > 100000)) continue;
                            const work w = {MONOID_compare, types[t], arrays[0] + off * bytes, m, 5, arrays[1] + off * bytes, &rule};
                            timed(variants[v].launch, &w, 1);
                            const compare_f32 c = taken();
                            if (v == 0) first = c;
                            else if (memcmp(&c, &first, sizeof c) != 0) { wrong++; if (wrong < 12) { printf("DIFFERENT %s n %llu offset %d\n", variants[v].name, (long long)m, off); show(first); show(c); } }
                        }
            }
        }
    }
    printf("different results: %d\n", wrong);
    return 0;
}
