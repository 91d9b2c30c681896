/* Headers of .npy files: what NumPy writes is read, byte for byte what NumPy would write is written, and everything
   damaged is refused with a message. By itself; the seeds of the fuzzing are constants below. */
#define TAP_WITHOUT_MPI
#include "tap.h"

#include "array/array.h"
#include "array/formats/npy.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "test_npy.XXXXXX";
static char path[64];

static void write_file(const void *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes, 1, length, file) != length || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

/* Does a parse or a description end as it must: right, or refused with a message that says what was expected? */
static bool refused(allfold_status status, const struct error *error)
{
    const size_t length = strlen(error->text);
    return (status == ALLFOLD_BAD_INPUT || status == ALLFOLD_UNSUPPORTED) && error->status == status && length + 1 < sizeof error->text &&
           strstr(error->text, "expected") != NULL && strstr(error->text, "found") != NULL;
}

static bool parse_refused(const char *text, size_t length)
{
    struct array_info info;
    struct error error = {.status = ALLFOLD_OK};
    char *copy = malloc(length + 1); /* of the exact length, for AddressSanitizer */
    memset(&info, 0, sizeof info);
    memcpy(copy, text, length);
    copy = realloc(copy, length > 0 ? length : 1);
    const allfold_status status = npy_parse(copy, length, &info, &error);
    free(copy);
    return refused(status, &error);
}

static bool file_refused(const void *bytes, size_t length)
{
    struct array_info info;
    struct error error = {.status = ALLFOLD_OK};
    write_file(bytes, length);
    return refused(array_describe(path, NULL, &info, &error), &error);
}

static const struct {
    const char *text;
    allfold_type type;
    uint32_t fortran_order, dimensions;
    uint64_t count;
    uint32_t swapped;
} good[] = {
    {"{'descr': '>f4', 'fortran_order': False, 'shape': (3,), }      \n", ALLFOLD_F32, 0, 1, 3, 1},
    {"{'descr': '>u8', 'fortran_order': True, 'shape': (3,2), }      \n", ALLFOLD_UINT64, 1, 2, 6, 1},
    {"{'descr': '>i1', 'fortran_order': False, 'shape': (3,), }      \n", ALLFOLD_INT8, 0, 1, 3, 0},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }      \n", ALLFOLD_F32, 0, 1, 3, 0},
    {"{'descr': '<f2', 'fortran_order': True, 'shape': (3, 4), }", ALLFOLD_F16, 1, 2, 12, 0},
    {"{'descr': '|i1', 'fortran_order': False, 'shape': (), }\n", ALLFOLD_INT8, 0, 0, 1, 0},
    {"{'descr': '|u1', 'fortran_order': False, 'shape': (0,), }\n", ALLFOLD_UINT8, 0, 1, 0, 0},
    {"{'descr': '<i1', 'fortran_order': False, 'shape': (2,0,7)}\n", ALLFOLD_INT8, 0, 3, 0, 0},
    {"{'shape':(3L,4294967296L),'fortran_order':False,'descr':'<i2'}", ALLFOLD_INT16, 0, 2, 3 * (UINT64_C(1) << 32), 0},
    {"{\"descr\": \"<u8\", \"fortran_order\": False, \"shape\": (1152921504606846975,)}", ALLFOLD_UINT64, 0, 1,
     UINT64_C(1152921504606846975) /* 2^63 - 8 bytes */, 0},
    {" {\t'descr'\n:\r'=f8' , 'shape' : ( 5 , ) , 'fortran_order' : True , } ", ALLFOLD_F64, 1, 1, 5, 0},
    {"{'descr': '<u4', 'fortran_order': False, 'shape': (2,3,), }", ALLFOLD_UINT32, 0, 2, 6, 0},
    {"{'descr': '<i8', 'fortran_order': False, 'shape': "
     "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,9), }", ALLFOLD_INT64, 0, 32, 9, 0},
};

static void test_good(void)
{
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct array_info info;
        struct error error = {.status = ALLFOLD_OK};
        memset(&info, 0, sizeof info);
        npy_parse(good[i].text, strlen(good[i].text), &info, &error);
        if (!tap_ok(error.status == ALLFOLD_OK && info.type == good[i].type && info.count == good[i].count &&
                        info.dimensions == good[i].dimensions && info.fortran_order == good[i].fortran_order &&
                        info.layout.swapped == good[i].swapped,
                    "header %zu of %s, %" PRIu64 " elements", i, allfold_type_name(good[i].type), good[i].count))
            tap_note("%s", error.text);
    }
}

/* Headers of which each has one fault. */
#define HEAD(descr, order, shape) "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }\n"
#define OF_TYPE(descr) HEAD(descr, "False", "(3,)")
#define OF_SHAPE(shape) HEAD("'<f4'", "False", shape)
static const char *const bad[] = {
    "", " ", "\n", "{", "}", "{}", "{,}", "[]", "()", "None", "{{}}", "x", "'descr'", "\xff\xfe", "{'descr'", "{'descr':",
    /* types */
    OF_TYPE("'|O'"), OF_TYPE("'O'"), OF_TYPE("'>f16'"), OF_TYPE("'>>f4'"), OF_TYPE("'<c8'"), OF_TYPE("'<c16'"),
    OF_TYPE("'?'"), OF_TYPE("'<U5'"), OF_TYPE("'|S5'"), OF_TYPE("'|V2'"), OF_TYPE("'<V2'"),
    OF_TYPE("'<M8[ns]'"), OF_TYPE("'<m8[s]'"), OF_TYPE("'<f16'"), OF_TYPE("'<f1'"), OF_TYPE("'<f3'"), OF_TYPE("'<i3'"),
    OF_TYPE("'<i16'"), OF_TYPE("'<u0'"), OF_TYPE("'<f'"), OF_TYPE("'<'"), OF_TYPE("''"), OF_TYPE("'f4'"),
    OF_TYPE("'|f4'"), OF_TYPE("'<<f4'"), OF_TYPE("'<f4 '"), OF_TYPE("' <f4'"), OF_TYPE("'float32'"), OF_TYPE("'<F4'"),
    OF_TYPE("'<f44'"), OF_TYPE("'<f-4'"), OF_TYPE("'<f4\\n'"), OF_TYPE("'<x4'"), OF_TYPE("f4"), OF_TYPE("4"),
    OF_TYPE("None"), OF_TYPE("b'<f4'"), OF_TYPE("u'<f4'"), OF_TYPE("'<f4"), OF_TYPE("<f4'"), OF_TYPE("'<f4\""),
    OF_TYPE("'''<f4'''"), OF_TYPE("'<f4' '<f4'"), OF_TYPE("('<f4', (2,))"), OF_TYPE("[('a', '<f4')]"),
    OF_TYPE("[('a', '<f4'), ('b', '>i4', (2,))]"), OF_TYPE("{'names': ['a']}"), OF_TYPE("'\xc3\xa9'"),
    OF_TYPE("'<f4, and so on for more bytes than the name of any element type may ever have'"),
    OF_TYPE("'%s%n%s%n'"), OF_TYPE(""),
    /* order */
    HEAD("'<f4'", "false", "(3,)"), HEAD("'<f4'", "0", "(3,)"), HEAD("'<f4'", "None", "(3,)"),
    HEAD("'<f4'", "'False'", "(3,)"), HEAD("'<f4'", "Falsey", "(3,)"), HEAD("'<f4'", "True False", "(3,)"),
    HEAD("'<f4'", "Fals", "(3,)"), HEAD("'<f4'", "", "(3,)"), HEAD("'<f4'", "TRUE", "(3,)"),
    /* shapes */
    OF_SHAPE("3"), OF_SHAPE("(3)"), OF_SHAPE("[3]"), OF_SHAPE("(3"), OF_SHAPE("3,)"), OF_SHAPE("(3,"), OF_SHAPE("(,)"),
    OF_SHAPE("(3,,)"), OF_SHAPE("(,3)"), OF_SHAPE("(3 4)"), OF_SHAPE("(-3,)"), OF_SHAPE("(+3,)"), OF_SHAPE("(3.0,)"),
    OF_SHAPE("(3e2,)"), OF_SHAPE("(0x3,)"), OF_SHAPE("(03,)"), OF_SHAPE("(00,)"), OF_SHAPE("(1_000,)"),
    OF_SHAPE("(3LL,)"), OF_SHAPE("(3 L,)"), OF_SHAPE("(L,)"), OF_SHAPE("(None,)"), OF_SHAPE("(True,)"),
    OF_SHAPE("('3',)"), OF_SHAPE("((3,),)"), OF_SHAPE("(3,)()"), OF_SHAPE("(3,))"), OF_SHAPE("{3}"), OF_SHAPE(""),
    OF_SHAPE("(3j,)"), OF_SHAPE("(3**2,)"), OF_SHAPE("(3+1,)"), OF_SHAPE("(\xd9\xa3,)"),
    OF_SHAPE("(18446744073709551616,)"), OF_SHAPE("(99999999999999999999999999999,)"),
    /* sizes that overflow: the dimension, the count, the bytes */
    OF_SHAPE("(9223372036854775808, 2)"), OF_SHAPE("(4294967296, 4294967296)"), OF_SHAPE("(18446744073709551615,)"),
    OF_SHAPE("(2305843009213693952,)"), OF_SHAPE("(4611686018427387904,)"), OF_SHAPE("(3, 6148914691236517206)"),
    OF_SHAPE("(0, 9223372036854775808, 2)"), OF_SHAPE("(0, 9223372036854775807, 2)"), OF_SHAPE("(4294967296, 4294967296, 0)"), OF_SHAPE("(9223372036854775808, 2, 0)"),
    OF_SHAPE("(65536, 65536, 65536, 65536)"), OF_SHAPE("(2097152, 2097152, 2097152, 2)"),
    /* more than 32 dimensions */
    OF_SHAPE("(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)"),
    OF_SHAPE("(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,)"),
    /* dictionaries */
    "{'descr': '<f4', 'fortran_order': False}", "{'descr': '<f4', 'shape': (3,)}",
    "{'fortran_order': False, 'shape': (3,)}", "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'shape': (4,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'more': 1}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (3,),, }", "{'descr': '<f4' 'fortran_order': False, 'shape': (3,)}",
    "{'descr' '<f4', 'fortran_order': False, 'shape': (3,)}", "{'Descr': '<f4', 'fortran_order': False, 'shape': (3,)}",
    "{descr: '<f4', 'fortran_order': False, 'shape': (3,)}", "{'descr ': '<f4', 'fortran_order': False, 'shape': (3,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)", "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)]",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} x", "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} # comment",
    "({'descr': '<f4', 'fortran_order': False, 'shape': (3,)})", "dict(descr='<f4', fortran_order=False, shape=(3,))",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)};import os", "{'descr': '<f4', **{}, 'shape': (3,)}",
    "{'descr'= '<f4', 'fortran_order': False, 'shape': (3,)}", "{'descr\\x00': '<f4', 'fortran_order': False}",
};

static void test_bad(void)
{
    static const char inside[] = "{'descr': '<f4\0', 'fortran_order': False, 'shape': (3,)}";
    static const char behind[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}\0";
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char shown[64]; /* as TAP takes it */
        snprintf(shown, sizeof shown, "%s", bad[i]);
        for (char *c = shown; *c != '\0'; c++)
            *c = *c < ' ' || *c > '~' || *c == '#' ? '.' : *c;
        tap_ok(parse_refused(bad[i], strlen(bad[i])), "refused: %s", shown);
    }
    tap_ok(parse_refused(inside, sizeof inside - 1), "refused: NUL in the type");
    tap_ok(parse_refused(behind, sizeof behind - 1), "refused: NUL at the end");
}

/* A whole file of 3 x 4 f32 elements, header of 128 bytes. */
#define FILE_BYTES (128 + 48)
static void make_file(unsigned char file[FILE_BYTES])
{
    struct array_info info = {.type = ALLFOLD_F32, .count = 12, .dimensions = 2, .shape = {3, 4}};
    char header[NPY_HEADER_BYTES_MAX];
    const size_t length = npy_header(&info, header);
    memset(file, 0, FILE_BYTES);
    memcpy(file, header, length <= 128 ? length : 128);
}

/* Every file that lacks an end, and every file with one byte of the magic, version, length or dictionary damaged. */
static void test_damaged_files(void)
{
    unsigned char file[FILE_BYTES + 1], damaged[FILE_BYTES];
    static const unsigned char wrong[] = {0x00, 0xff, '~', 'x', ')'};
    struct array_info info;
    struct error error = {.status = ALLFOLD_OK};
    make_file(file);
    write_file(file, FILE_BYTES);
    tap_ok(array_describe(path, NULL, &info, &error) == ALLFOLD_OK && info.count == 12 && info.layout.offset == 128 &&
               info.file_bytes == FILE_BYTES && strcmp(array_format_name(&info), "npy") == 0,
           "the file that is damaged below is right");
    int accepted = 0;
    for (size_t length = 0; length < FILE_BYTES; length++)
        accepted += !file_refused(file, length);
    tap_ok(accepted == 0, "%d files cut short are refused, each with a message", FILE_BYTES);
    file[FILE_BYTES] = 0;
    tap_ok(file_refused(file, FILE_BYTES + 1), "a file with one byte too many is refused");
    const size_t end = (size_t)((unsigned char *)strchr((char *)file + 10, '}') + 1 - file);
    int variants = 0;
    accepted = 0;
    for (size_t at = 0; at < end; at++)
        for (size_t i = 0; i < sizeof wrong && file[at] != ' '; i++) {
            if (file[at] == wrong[i])
                continue;
            memcpy(damaged, file, FILE_BYTES);
            damaged[at] = wrong[i];
            variants++;
            if (!file_refused(damaged, FILE_BYTES)) {
                accepted++;
                tap_note("byte %zu as 0x%02x is accepted", at, wrong[i]);
            }
        }
    tap_ok(accepted == 0 && variants >= 200, "%d files with one damaged byte are refused, each with a message", variants);
}

static void test_lengths(void)
{
    static unsigned char file[(1 << 20) + 64];
    const char dictionary[] = "{'descr': '|i1', 'fortran_order': False, 'shape': (), }";
    struct array_info info;
    struct error error = {.status = ALLFOLD_OK};
    memset(file, ' ', sizeof file);
    memcpy(file, NPY_MAGIC "\x02\x00\x00\x00\x10\x00", 12); /* 2^20 bytes of header */
    memcpy(file + 12, dictionary, strlen(dictionary));
    write_file(file, 12 + (1 << 20) + 1);
    tap_ok(array_describe(path, NULL, &info, &error) == ALLFOLD_OK && info.count == 1 && info.dimensions == 0,
           "version 2.0 with a header of 1 MiB");
    file[8] = 1;
    tap_ok(file_refused(file, 12 + (1 << 20) + 2), "a header of 1 MiB and a byte is refused");
    memcpy(file + 6, "\x03\x00\xff\xff\xff\xff", 6);
    tap_ok(file_refused(file, sizeof file), "version 3.0 with a header of 4 GiB is refused");
    memcpy(file + 6, "\x01\x00\xff\xff", 4);
    memcpy(file + 10, dictionary, strlen(dictionary));
    memset(file + 10 + strlen(dictionary), ' ', 8);
    error = (struct error){.status = ALLFOLD_OK};
    write_file(file, 10 + 65535 + 1);
    tap_ok(array_describe(path, NULL, &info, &error) == ALLFOLD_OK && info.layout.offset == 10 + 65535,
           "version 1.0 with a header of 64 KiB, data not aligned");
    for (int version = 0; version < 3; version++) {
        static const char versions[3][2] = {{0, 0}, {4, 0}, {1, 1}};
        memcpy(file + 6, versions[version], 2);
        tap_ok(file_refused(file, 10 + 65535 + 1), "version %d.%d is refused", versions[version][0], versions[version][1]);
    }
}

/* What NumPy 2 writes for np.save(np.zeros((3, 4), 'f4')), then a scalar and a Fortran order. */
static void test_written(void)
{
    struct array_info info = {.type = ALLFOLD_F32, .count = 12, .dimensions = 2, .shape = {3, 4}};
    char header[NPY_HEADER_BYTES_MAX], expected[129];
    snprintf(expected, sizeof expected, "%s%-117s\n", NPY_MAGIC "\x01|v|",
             "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }");
    memcpy(expected + 7, "\0\x76\0", 3);
    tap_ok(npy_header(&info, header) == 128 && memcmp(header, expected, 128) == 0, "NumPy's header of a (3, 4) f32");
    info = (struct array_info){.type = ALLFOLD_UINT8, .count = 1};
    snprintf(expected, sizeof expected, "%-117s\n", "{'descr': '|u1', 'fortran_order': False, 'shape': (), }");
    tap_ok(npy_header(&info, header) == 128 && memcmp(header + 10, expected, 118) == 0, "NumPy's header of a u8 scalar");
    /* a header that fills 128 bytes exactly gets 64 more; so NumPy does */
    info = (struct array_info){.type = ALLFOLD_F32, .count = 200, .dimensions = 14,
                               .shape = {2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 100}};
    tap_ok(npy_header(&info, header) == 192, "NumPy's padding of a full line");
    info = (struct array_info){.type = ALLFOLD_F64, .count = 0, .dimensions = 32, .fortran_order = 1};
    for (int i = 0; i < 32; i++)
        info.shape[i] = i == 3 ? 0 : UINT64_MAX;
    const size_t length = npy_header(&info, header);
    tap_ok(length % 64 == 0 && length < sizeof header && header[length - 1] == '\n',
           "the longest header, %zu bytes, fits", length);
}

static uint64_t state = 20240613; /* the seed of the fuzzing */
static uint64_t random_below(uint64_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 33) % n;
}

/* Random edits of good headers: whatever comes out is refused with a message, or describes a possible array. */
static void test_fuzz(void)
{
    static const char pool[] = "{}()[],:'\"<>=|\\ \n\t0123456789LfiuOTrueFalsedcxhpn_-+.\0\x80\xff";
    int accepted = 0, wrong = 0;
    const int rounds = 200000;
    for (int round = 0; round < rounds; round++) {
        char text[256];
        size_t length = strlen(good[round % 10].text);
        memcpy(text, good[round % 10].text, length);
        for (uint64_t edits = 1 + random_below(4); edits > 0 && length > 1; edits--) {
            const size_t at = random_below(length), run = 1 + random_below(8);
            const uint64_t edit = random_below(4);
            if (edit == 0) { /* one byte changed */
                text[at] = pool[random_below(sizeof pool - 1)];
            } else if (edit == 1 && at + run < length) { /* some deleted */
                memmove(text + at, text + at + run, length - at - run);
                length -= run;
            } else if (edit == 2 && length + run < sizeof text && at + run < length) { /* some doubled */
                memmove(text + at + run, text + at, length - at);
                length += run;
            } else if (edit == 3 && length + 1 < sizeof text) { /* one put in */
                memmove(text + at + 1, text + at, length - at);
                text[at] = pool[random_below(sizeof pool - 1)];
                length++;
            }
        }
        if (parse_refused(text, length))
            continue;
        struct array_info info;
        struct error error = {.status = ALLFOLD_OK};
        uint64_t count = 0;
        memset(&info, 0, sizeof info);
        const bool right = npy_parse(text, length, &info, &error) == ALLFOLD_OK && info.dimensions <= 32 &&
                           info.type < ALLFOLD_TYPE_COUNT && info.type != ALLFOLD_BF16 && info.fortran_order <= 1 &&
                           array_count(info.shape, info.dimensions, allfold_type_bytes(info.type), &count) &&
                           count == info.count;
        accepted++;
        if (!right && wrong++ == 0)
            tap_note("%.*s", (int)length, text);
    }
    tap_ok(wrong == 0 && accepted < rounds / 2, "%d mutated headers: %d stay valid, the others are refused", rounds,
           accepted);
}

int main(void)
{
    if (mkdtemp(folder) == NULL) {
        perror(folder);
        return 1;
    }
    snprintf(path, sizeof path, "%s/x.npy", folder);
    test_good();
    test_bad();
    test_damaged_files();
    test_lengths();
    test_written();
    test_fuzz();
    unlink(path);
    rmdir(folder);
    return tap_done();
}
