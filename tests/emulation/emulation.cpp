/* The emulation of CUDA's execution: the threads of a block are fibers of one host thread. A block runs until it ends, or
   all that its threads can still do is to wait for other blocks; then another has its turn.

   A warp runs until all its threads wait at a barrier of the block, or have ended, before another warp runs at all. In
   shuffled order a warp is so as far ahead of another, or behind it, as the barriers allow: a missing barrier gives a
   wrong result in some order. Within a warp a lane runs until it waits for others.

   Several threads of the host may launch kernels. One launch runs at a time, in the thread that asks for it. */
#include "emulation.h"

#include "cuda_runtime.h"

#include <algorithm>
#include <mutex>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;
emulation_counts emulation_counted;

/* AddressSanitizer must know on which stack the program runs. (This file itself is compiled without: it switches.) To it all stacks of a
   block are one, so that it need not be told of each turn of a lane, which would take a fifth of the time of a launch. */
#ifdef EMULATION_SANITIZED
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
/* One stack for real frames and fake ones; a fake one for each fiber would take gigabytes. Undefined behaviour is an illegal instruction. */
extern "C" const char *__asan_default_options() { return "detect_stack_use_after_return=0:handle_sigill=1"; }
#else
static void __sanitizer_start_switch_fiber(void **, const void *, size_t) {}
static void __sanitizer_finish_switch_fiber(void *, const void **, size_t *) {}
static void __asan_unpoison_memory_region(const volatile void *, size_t) {}
static void __asan_poison_memory_region(const volatile void *, size_t) {}
#endif

/* Linked first and last of the emulated kernels; between them lie their __shared__ variables, and nothing of this file. */
extern __thread char emulation_shared_begin[16], emulation_shared_end[16];
/* Shared memory whose size is given at launch: as much of it as was asked for. */
alignas(16) thread_local unsigned char bytes[224 << 10];
/* What initialises it, which is nothing: in a shared object gcc calls it without asking whether it is there. */
extern "C" void _ZTH5bytes(void);
extern "C" void _ZTH5bytes(void) {}

constexpr size_t STACK_BYTES = 128 << 10;

/* A context is a stack and where it was left. swapcontext would do everywhere, but makes system calls. */
#if defined(__x86_64__) && !defined(EMULATION_UCONTEXT)
struct context {
    void *stack_pointer;
};
extern "C" void emulation_switch(context *from, const context *to);
__asm__(".text\n"
        ".type emulation_switch, @function\n"
        "emulation_switch:\n"
        "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n    pushq %r13\n    pushq %r14\n    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq (%rsi), %rsp\n"
        "    popq %r15\n    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbx\n    popq %rbp\n"
        "    ret\n"
        ".size emulation_switch, . - emulation_switch\n");

static void context_start(context *context, char *stack, void (*entry)())
{
    void **const top = (void **)(stack + STACK_BYTES) - 8;
    for (int i = 0; i < 8; i++)
        top[i] = nullptr; /* six registers, entry, and where it would return to */
    top[6] = (void *)entry;
    context->stack_pointer = top;
}
#else
#include <ucontext.h>
typedef ucontext_t context;
static void emulation_switch(context *from, const context *to) { swapcontext(from, to); }
static void context_start(context *context, char *stack, void (*entry)())
{
    getcontext(context);
    context->uc_stack.ss_sp = stack;
    context->uc_stack.ss_size = STACK_BYTES;
    context->uc_link = nullptr;
    makecontext(context, entry, 0);
}
#endif

namespace {

constexpr unsigned int THREADS_MAX = 1024, LANES = 32;
constexpr size_t TOUCHED_MOST = 32; /* pages that are filled faster than they are made read-only */

enum state { READY, AT_BARRIER, AT_WARP, PAUSED, ENDED };

/* 16 bytes on their way to shared memory. */
struct copy {
    void *to;
    const void *from;
    unsigned int group;
};

struct fiber {
    context place;
    char *stack;
    const void *block_stacks; /* as AddressSanitizer knows them */
    size_t block_stacks_bytes;
    void *fake_stack; /* of the scheduler, and of a block's first */
    uint3 index;
    state waits;
    emulation_site site; /* where it waits, and what it brings */
    unsigned int mask;
    int source;
    uint64_t value;
    std::vector<copy> *copies; /* until the end of the program */
    unsigned int groups;       /* of copies, that are committed */
};

struct block_state {
    uint3 index;
    fiber *fibers;            /* THREADS_MAX; nullptr before it begins, and once it has ended */
    std::vector<char> shared; /* its shared memory while others run */
    bool ended;
};
struct span {
    char *start;
    size_t bytes;
};
/* Of the thread that launches. */
struct shared_memory {
    std::vector<span> touched; /* what blocks may have written to */
    span pages;                /* whole ones, of which the others are read-only, until the thread ends */
    ~shared_memory() { mprotect(pages.start, pages.bytes, PROT_READ | PROT_WRITE); }
};

fiber scheduler, *current = &scheduler, *previous;
fiber *fibers;        /* of the block that runs */
unsigned int threads; /* of a block */
std::vector<fiber *> &idle_fibers = *new std::vector<fiber *>; /* until the end of the program */
uint64_t progress;    /* counts what threads do beside waiting for other blocks */
size_t shared_bytes;
thread_local shared_memory shared;
struct sigaction handler_before;
fiber *warp;          /* that runs */
unsigned int lanes, lane_order[LANES], lanes_run;
void (*kernel_body)(void *);
void *kernel_arguments;
char fault[1000];
uint64_t random_state;
bool refuses_together;
std::mutex launching; /* held during a launch: all state here belongs to it */
thread_local cudaError_t last_error;

void fault_add(const char *format, ...)
{
    const size_t length = strlen(fault);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fault + length, sizeof fault - length, format, arguments);
    va_end(arguments);
}

unsigned int random_below(unsigned int n) /* xorshift64* */
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (unsigned int)((random_state * 0x2545f4914f6cdd1dull >> 32) * n >> 32);
}

/* 0 .. n-1 in the order that is set. */
void order(unsigned int *numbers, unsigned int n)
{
    for (unsigned int i = 0; i < n; i++)
        numbers[i] = i;
    if (random_state != 0)
        for (unsigned int i = n; i > 1; i--)
            std::swap(numbers[i - 1], numbers[random_below(i)]);
}

/* After a switch: from the scheduler to a block, or back. */
void switched()
{
    if (previous == &scheduler)
        __sanitizer_finish_switch_fiber(fibers[0].fake_stack, &scheduler.block_stacks, &scheduler.block_stacks_bytes);
    else if (current == &scheduler)
        __sanitizer_finish_switch_fiber(scheduler.fake_stack, nullptr, nullptr);
}

void switch_to(fiber *to)
{
    fiber *const me = current;
    previous = me;
    current = to;
    threadIdx = to->index;
    if (me == &scheduler || to == &scheduler)
        __sanitizer_start_switch_fiber(me == &scheduler ? &scheduler.fake_stack : &fibers[0].fake_stack, to->block_stacks, to->block_stacks_bytes);
    emulation_switch(&me->place, &to->place);
    switched();
}

/* The warp's next lane that can run, else the scheduler. */
fiber *next_to_run()
{
    while (lanes_run < lanes && fault[0] == '\0') {
        fiber *const lane = &warp[lane_order[lanes_run++]];
        if (lane->waits == READY)
            return lane;
    }
    return &scheduler;
}

void wait(state why)
{
    current->waits = why;
    progress += why != PAUSED;
    switch_to(next_to_run());
}

void fiber_main()
{
    switched();
    kernel_body(kernel_arguments);
    wait(ENDED);
}

bool same_site(const fiber &a, const fiber &b)
{
    return a.site.line == b.site.line && (a.site.file == b.site.file || strcmp(a.site.file, b.site.file) == 0);
}

/* Whether all lanes that this one waits for wait at the same place for the same lanes. */
bool warp_complete(const fiber &waiting)
{
    for (unsigned int lane = 0; lane < LANES; lane++)
        if ((waiting.mask >> lane & 1) != 0
            && (lane >= lanes || warp[lane].waits != AT_WARP || warp[lane].mask != waiting.mask
                || !same_site(warp[lane], waiting)))
            return false;
    return true;
}

/* Lets the lanes of a complete exchange go on. All get their results before any runs again. */
void warp_exchange(unsigned int mask)
{
    uint64_t results[LANES], votes = 0;
    for (unsigned int lane = 0; lane < lanes; lane++)
        if ((mask >> lane & 1) != 0 && warp[lane].value != 0)
            votes |= (uint64_t)1 << lane;
    for (unsigned int lane = 0; lane < lanes; lane++)
        if ((mask >> lane & 1) != 0)
            results[lane] = warp[lane].source == EMULATION_VOTE ? votes : warp[warp[lane].source].value;
    for (unsigned int lane = 0; lane < lanes; lane++)
        if ((mask >> lane & 1) != 0) {
            warp[lane].value = results[lane];
            warp[lane].waits = READY;
        }
}

/* Runs the warp whose first thread is given until none of its lanes can go on. */
void warp_run(unsigned int first)
{
    warp = fibers + first;
    lanes = threads - first < LANES ? threads - first : LANES;
    for (bool again = true; again && fault[0] == '\0';) {
        order(lane_order, lanes);
        lanes_run = 0;
        fiber *const lane = next_to_run();
        if (lane != &scheduler)
            switch_to(lane);
        again = false;
        for (unsigned int i = 0; i < lanes; i++)
            if (warp[i].waits == AT_WARP && warp_complete(warp[i])) {
                warp_exchange(warp[i].mask);
                again = true;
            }
    }
}

/* No thread can go on: says where each waits. */
void fault_stall()
{
    bool told[THREADS_MAX] = {false};
    fault_add("the threads of block (%u, %u, %u) wait for each other forever:", blockIdx.x, blockIdx.y, blockIdx.z);
    for (unsigned int i = 0; i < threads; i++) {
        unsigned int count = 0;
        const fiber &a = fibers[i];
        for (unsigned int j = i; j < threads; j++) {
            const fiber &b = fibers[j];
            if (!told[j] && a.waits == b.waits && (a.waits == ENDED || (same_site(a, b) && a.mask == b.mask))) {
                told[j] = true;
                count++;
            }
        }
        if (count == 0)
            continue;
        fault_add(" %u from thread %u on ", count, i);
        if (a.waits == ENDED)
            fault_add("ended;");
        else if (a.waits == AT_BARRIER)
            fault_add("at __syncthreads, %s:%d;", a.site.file, a.site.line);
        else if (a.waits == PAUSED)
            fault_add("for another block, %s:%d;", a.site.file, a.site.line);
        else
            fault_add("for lanes %08x, %s:%d;", a.mask, a.site.file, a.site.line);
    }
}

/* Whether all threads wait at one barrier of the block; then they go on. */
bool block_barrier()
{
    for (unsigned int i = 0; i < threads; i++)
        if (fibers[i].waits != AT_BARRIER || !same_site(fibers[i], fibers[0]))
            return false;
    for (unsigned int i = 0; i < threads; i++)
        fibers[i].waits = READY;
    return true;
}

unsigned int threads_that(state what)
{
    unsigned int count = 0;
    for (unsigned int i = 0; i < threads; i++)
        count += fibers[i].waits == what;
    return count;
}

/* Shared memory is all ones before a block writes to it: NaN, -1, the largest index, and no bool. All kernels' is megabytes, of which one
   uses little. So its pages are read-only until a block writes to them, and only those are filled, saved and restored. */
void page_touched(int, siginfo_t *info, void *)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *const at = (char *)info->si_addr, *const start = at - (uintptr_t)at % page;
    if (start < shared.pages.start || start >= shared.pages.start + shared.pages.bytes || mprotect(start, page, PROT_READ | PROT_WRITE) != 0)
        sigaction(SIGSEGV, &handler_before, nullptr); /* a mistake: it happens once more, now to those who report it */
    else
        shared.touched.push_back({start, page});
}
/* The thread's first launch, or one after kernels that used many pages, begins with none that is touched. */
void shared_open()
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), all = (size_t)(emulation_shared_end - emulation_shared_begin);
    const size_t before = std::min(all, (size_t)-(uintptr_t)emulation_shared_begin % page), whole = (all - before) / page * page;
    char *const start = emulation_shared_begin + before;
    struct sigaction action = {};
    if (shared.touched.empty())
        memset(emulation_shared_begin, 0xff, all);
    if (shared.touched.empty() || shared.touched.size() > TOUCHED_MOST) {
        mprotect(start, whole, PROT_READ);
        shared.pages = {start, whole};
        shared.touched.reserve(3 + whole / page);
        shared.touched = {{nullptr, 0}, {emulation_shared_begin, before}, {start + whole, all - before - whole}};
    }
    shared.touched[0] = {(char *)bytes, shared_bytes};
    action.sa_sigaction = page_touched;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, &handler_before);
}
void shared_fill()
{
    for (const span &s : shared.touched)
        memset(s.start, 0xff, s.bytes);
}
void shared_close()
{
    shared_fill();
    sigaction(SIGSEGV, &handler_before, nullptr);
}
void shared_save(block_state *b)
{
    b->shared.clear();
    for (const span &s : shared.touched)
        b->shared.insert(b->shared.end(), s.start, s.start + s.bytes);
}
/* What was touched since it was saved was so by others. */
void shared_restore(const block_state *b)
{
    size_t saved = 0;
    for (const span &s : shared.touched) {
        if (saved < b->shared.size())
            memcpy(s.start, b->shared.data() + saved, s.bytes);
        else
            memset(s.start, 0xff, s.bytes);
        saved += s.bytes;
    }
}

/* Threads, each with a stack above a page that none may touch; nullptr where there is no memory. */
fiber *fibers_allocate()
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), each = page + STACK_BYTES;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    fiber *const made = (fiber *)calloc(THREADS_MAX, sizeof *made);
    char *const room = (char *)mmap(nullptr, THREADS_MAX * each, PROT_NONE, flags, -1, 0);
    if (made == nullptr || room == MAP_FAILED)
        return nullptr;
    for (unsigned int i = 0; i < THREADS_MAX; i++) {
        char *const stack = room + i * each + page;
        if (mprotect(stack, STACK_BYTES, PROT_READ | PROT_WRITE) != 0)
            return nullptr;
        made[i].stack = stack;
        made[i].block_stacks = room;
        made[i].block_stacks_bytes = THREADS_MAX * each;
        made[i].copies = new std::vector<copy>;
    }
    return made;
}

bool block_begin(block_state *b)
{
    if (idle_fibers.empty()) {
        fiber *const made = fibers_allocate();
        if (made == nullptr) {
            fault_add("no memory for %u stacks", THREADS_MAX);
            return false;
        }
        idle_fibers.push_back(made);
    }
    fibers = b->fibers = idle_fibers.back();
    idle_fibers.pop_back();
    for (unsigned int i = 0; i < threads; i++) {
        fibers[i].index = {i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y};
        fibers[i].waits = READY;
        fibers[i].copies->clear();
        fibers[i].groups = 0;
        context_start(&fibers[i].place, fibers[i].stack, fiber_main);
    }
    shared_fill();
    emulation_counted.threads += threads;
    return true;
}

/* Also of a block in the middle of its work, whose fibers are left where they are. */
void block_end(block_state *b)
{
    for (unsigned int i = 0; b->fibers != nullptr && i < threads; i++)
        if (b->fibers[i].waits != ENDED)
            __asan_unpoison_memory_region(b->fibers[i].stack, STACK_BYTES);
    if (b->fibers != nullptr)
        idle_fibers.push_back(b->fibers);
    *b = {b->index, nullptr, {}, true};
}

/* Words on their way to memory. */
struct store {
    uint64_t *to, word;
};
std::vector<store> &under_way = *new std::vector<store>;

/* Each of them arrives, or one in two. A word does not overtake an earlier one to its address. */
void arrive(bool all)
{
    std::vector<store> late;
    for (const store &s : under_way) {
        bool stays = !all && random_below(2) != 0;
        for (const store &earlier : late)
            stays = stays || earlier.to == s.to;
        if (stays) {
            late.push_back(s);
        } else {
            *s.to = s.word;
            progress++;
        }
    }
    under_way.swap(late);
}

/* Runs a block until it ends or waits for others; those that waited look again. */
void block_turn(block_state *b)
{
    unsigned int warps[THREADS_MAX / LANES];
    const unsigned int warp_count = (threads + LANES - 1) / LANES;
    arrive(false);
    blockIdx = b->index;
    if (b->fibers != nullptr) {
        fibers = b->fibers;
        shared_restore(b);
    } else if (!block_begin(b))
        return;
    for (unsigned int i = 0; i < threads; i++)
        if (fibers[i].waits == PAUSED)
            fibers[i].waits = READY;
    do {
        order(warps, warp_count);
        for (unsigned int i = 0; i < warp_count; i++)
            warp_run(warps[i] * LANES);
    } while (fault[0] == '\0' && block_barrier());
    if (fault[0] != '\0')
        return;
    if (threads_that(ENDED) == threads)
        block_end(b);
    else if (threads_that(PAUSED) == 0)
        fault_stall();
    else
        shared_save(b);
}

/* Gives all blocks turns until they have ended. Where nothing happens any more but waiting, they wait forever. */
void grid_run(std::vector<block_state> &blocks)
{
    constexpr int PASSES_OF_WAITING = 100;
    bool left = true;
    for (int idle = 0; left && fault[0] == '\0';) {
        const uint64_t before = progress;
        left = false;
        for (block_state &b : blocks)
            if (!b.ended && fault[0] == '\0') {
                block_turn(&b);
                left = left || !b.ended;
            }
        idle = progress == before ? idle + 1 : 0;
        if (idle == PASSES_OF_WAITING)
            fault_stall();
    }
    for (block_state &b : blocks)
        if (!b.ended)
            block_end(&b);
    arrive(true);
}

} // namespace

void emulation_order(uint64_t seed) { random_state = seed; }
void emulation_refuse_together(bool refuse) { refuses_together = refuse; }
const char *emulation_fault(void) { return fault; }

void emulation_barrier(emulation_site site)
{
    current->site = site;
    current->mask = 0;
    emulation_counted.barriers++;
    wait(AT_BARRIER);
}

void emulation_unaligned(const void *at, size_t bytes)
{
    fault_add("thread (%u, %u, %u) of block (%u, %u, %u) takes %zu bytes at %p, which is not aligned to them", threadIdx.x,
              threadIdx.y, threadIdx.z, blockIdx.x, blockIdx.y, blockIdx.z, bytes, at);
    wait(AT_BARRIER);
}

void emulation_pause(emulation_site site)
{
    current->site = site;
    current->mask = 0;
    wait(PAUSED);
}

void emulation_store(uint64_t *to, uint64_t word)
{
    if (random_state == 0)
        *to = word;
    else
        under_way.push_back({to, word});
}

void emulation_fence(void) { arrive(true); }

void emulation_copy_later(void *to, const void *from)
{
    if (random_state == 0 || random_below(2) == 0)
        memcpy(to, from, 16);
    else
        current->copies->push_back({to, from, current->groups});
}
void emulation_copy_commit(void) { current->groups++; }
void emulation_copy_wait(int pending)
{
    std::vector<copy> late;
    for (const copy &c : *current->copies)
        if (pending == 0 || c.group + (unsigned int)pending < current->groups)
            memcpy(c.to, c.from, 16);
        else
            late.push_back(c);
    current->copies->swap(late);
}

uint64_t emulation_warp(unsigned int mask, uint64_t value, int source, emulation_site site)
{
    fiber *const me = current;
    const int lane = emulation_lane();
    if ((mask >> lane & 1) == 0)
        fault_add("lane %d waits for lanes %08x, without itself, %s:%d", lane, mask, site.file, site.line);
    else if (source != EMULATION_VOTE && (mask >> source & 1) == 0)
        fault_add("lane %d takes the value of lane %d, not one of %08x, %s:%d", lane, source, mask, site.file, site.line);
    me->site = site;
    me->mask = mask;
    me->value = value;
    me->source = source;
    emulation_counted.exchanges++;
    wait(AT_WARP);
    return me->value;
}

cudaError_t emulation_launch(const cudaLaunchConfig_t *config, void (*body)(void *), void *arguments)
{
    const dim3 grid = config->gridDim, block = config->blockDim;
    const uint64_t block_threads = (uint64_t)block.x * block.y * block.z;
    const std::lock_guard<std::mutex> alone(launching);
    fault[0] = '\0';
    for (unsigned int i = 0; i < config->numAttrs && refuses_together; i++)
        if (config->attrs[i].id == cudaLaunchAttributeCooperative)
            return last_error = cudaErrorCooperativeLaunchTooLarge;
    if (grid.x - 1 >= INT32_MAX || grid.y - 1 >= 65535 || grid.z - 1 >= 65535 || block.z > 64
        || block_threads - 1 >= THREADS_MAX || config->dynamicSmemBytes > sizeof bytes)
        return last_error = cudaErrorInvalidConfiguration;
    gridDim = grid;
    blockDim = block;
    threads = (unsigned int)block_threads;
    shared_bytes = config->dynamicSmemBytes;
    kernel_body = body;
    kernel_arguments = arguments;
    const unsigned int count = grid.x * grid.y * grid.z;
    std::vector<unsigned int> numbers(count);
    std::vector<block_state> blocks(count);
    order(numbers.data(), count);
    for (unsigned int i = 0; i < count; i++)
        blocks[i].index = {numbers[i] % grid.x, numbers[i] / grid.x % grid.y, numbers[i] / grid.x / grid.y};
    __asan_unpoison_memory_region(bytes, sizeof bytes);
    __asan_poison_memory_region(bytes + shared_bytes, sizeof bytes - shared_bytes);
    shared_open();
    grid_run(blocks);
    shared_close();
    return last_error = fault[0] == '\0' ? cudaSuccess : cudaErrorLaunchFailure;
}

extern "C" cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
