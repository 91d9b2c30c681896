/* Reading and writing headers of .npy files. The reader accepts the dictionaries that NumPy writes, on Python 2 and 3,
   and nothing else; whatever it refuses it names, with the byte at which it stands. */
#include "array/formats/npy.h"
#include "array/formats/formats.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION_BYTES 2
#define HEADER_BYTES_LIMIT (UINT32_C(1) << 20) /* version 1 cannot say more than 64 KiB */
#define STRING_BYTES 64
#define QUOTED_BYTES 24

struct npy_parser {
    const char *text, *at, *end;
    struct error *error;
};

enum key { KEY_DESCR = 1, KEY_ORDER = 2, KEY_SHAPE = 4, KEY_ALL = 7 };
static const char *const key_names[] = {[KEY_DESCR] = "descr", [KEY_ORDER] = "fortran_order", [KEY_SHAPE] = "shape"};

/* What stands at the parser's place, fit to print. */
static const char *found(const struct npy_parser *p, char quoted[4 * QUOTED_BYTES + 8])
{
    if (p->at == p->end)
        return "the end of the header";
    char *out = quoted;
    *out++ = '`';
    for (const char *c = p->at; c < p->end && c < p->at + QUOTED_BYTES && *c != '\n'; c++)
        out += *c >= ' ' && *c <= '~' ? sprintf(out, "%c", *c) : sprintf(out, "\\x%02x", (unsigned char)*c);
    strcpy(out, "`");
    return quoted;
}

static bool expected(const struct npy_parser *p, const char *what)
{
    char quoted[4 * QUOTED_BYTES + 8];
    error_set(p->error, ALLFOLD_BAD_INPUT, ".npy header: expected %s, found %s at byte %zu", what, found(p, quoted),
              (size_t)(p->at - p->text));
    return false;
}

static void skip_space(struct npy_parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r'))
        p->at++;
}

/* Takes the character if it comes next, after spaces. */
static bool take(struct npy_parser *p, char c)
{
    skip_space(p);
    if (p->at == p->end || *p->at != c)
        return false;
    p->at++;
    return true;
}

static bool take_word(struct npy_parser *p, const char *word)
{
    const size_t length = strlen(word);
    skip_space(p);
    if ((size_t)(p->end - p->at) < length || memcmp(p->at, word, length) != 0)
        return false;
    p->at += length;
    return true;
}

/* A string without escapes, in either quotes. Stays before it on failure, so that the message shows it. */
static bool parse_string(struct npy_parser *p, const char *what, char value[STRING_BYTES])
{
    skip_space(p);
    if (p->at == p->end || (*p->at != '\'' && *p->at != '"'))
        return expected(p, what);
    const char *first = p->at + 1;
    const char *last = memchr(first, *p->at, (size_t)(p->end - first));
    if (last == NULL || last - first >= STRING_BYTES || memchr(first, '\\', (size_t)(last - first)) != NULL ||
        memchr(first, '\0', (size_t)(last - first)) != NULL)
        return expected(p, what);
    memcpy(value, first, (size_t)(last - first));
    value[last - first] = '\0';
    p->at = last + 1;
    return true;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* One dimension: decimal digits, with the L that Python 2 put behind long integers. */
static bool parse_dimension(struct npy_parser *p, uint64_t *value)
{
    skip_space(p);
    const char *first = p->at;
    uint64_t n = 0;
    for (; p->at < p->end && is_digit(*p->at); p->at++)
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, (uint64_t)(*p->at - '0'), &n)) {
            p->at = first;
            return expected(p, "a dimension below 2^64");
        }
    if (p->at == first)
        return expected(p, "a dimension (decimal digits)");
    if (*first == '0' && p->at - first > 1) {
        p->at = first;
        return expected(p, "a dimension without leading zeros");
    }
    if (p->at < p->end && *p->at == 'L')
        p->at++;
    *value = n;
    return true;
}

static bool parse_shape(struct npy_parser *p, struct array_info *info)
{
    if (!take(p, '('))
        return expected(p, "the shape as a tuple of integers such as (3, 4)");
    bool comma = true; /* one separates a dimension from the next, and follows the only one */
    while (!take(p, ')')) {
        if (!comma)
            return expected(p, "`,` or `)` after a dimension");
        if (info->dimensions == ARRAY_DIMENSIONS_MAX)
            return expected(p, "at most 32 dimensions");
        if (!parse_dimension(p, &info->shape[info->dimensions]))
            return false;
        info->dimensions++;
        comma = take(p, ',');
    }
    if (info->dimensions == 1 && !comma) {
        p->at--;
        return expected(p, "`,` after the only dimension, as in (3,)");
    }
    return true;
}

/* Why a type is refused. */
static const char *refused_kind(const char *kind)
{
    if (kind[0] != '\0' && kind[1] == '\0' && strchr("?bBhHiIlLqQpPefdgFDG", kind[0]) != NULL)
        return "a letter that NumPy has for a type, where its files have kind and bytes, such as '<f2' for 'e' and '|b1' for '?'";
    switch (kind[0]) {
    case 'O': return "Python objects";
    case 'b': return "truth values of another size";
    case 'c': return "complex numbers";
    case 'S':
    case 'a':
    case 'U': return "strings";
    case 'V': return "raw bytes (a structure, or a type that NumPy lacks, such as bfloat16: strip the header and "
                     "read it with --dtype)";
    case 'M':
    case 'm': return "dates or time spans";
    case 'f': return "floating point of another size";
    case 'i':
    case 'u': return "integers of another size";
    default: return "not a type of NumPy's";
    }
}

#define TYPES_EXPECTED "f2, f4, f8, i1 to i8, u1 to u8 or b1"

static bool refuse_type(const struct npy_parser *p, const char *descr, const char *reason)
{
    error_set(p->error, ALLFOLD_UNSUPPORTED, ".npy header: expected elements of type " TYPES_EXPECTED ", found '%.16s': %s", descr, reason);
    return false;
}

bool npy_has(allfold_type type)
{
    char name[sizeof "float64"];
    snprintf(name, sizeof name, "float%u", type_number_bits(type) % 100);
    return type_kind(type) != 'f' || strcmp(type_numpy_name(type), name) == 0;
}

/* '<f4' and its like: byte order, kind, bytes. */
static bool parse_type(struct npy_parser *p, struct array_info *info)
{
    char descr[STRING_BYTES];
    skip_space(p);
    if (p->at < p->end && (*p->at == '[' || *p->at == '(')) {
        expected(p, "elements of one type (" TYPES_EXPECTED "), not a structured type");
        p->error->status = ALLFOLD_UNSUPPORTED;
        return false;
    }
    if (!parse_string(p, "the element type as a string such as '<f4'", descr))
        return false;
    for (const char *c = descr; *c != '\0'; c++)
        if (*c < ' ' || *c > '~')
            return refuse_type(p, "?", "unprintable characters");
    const char order = descr[0];
    const bool ordered = order != '\0' && strchr("<>=|", order) != NULL;
    const char *kind = ordered ? descr + 1 : descr;
    for (int i = ALLFOLD_TYPE_NONE + 1; i < ALLFOLD_TYPE_COUNT; i++) {
        const allfold_type t = (allfold_type)i;
        const size_t bytes = allfold_type_bytes(t);
        if (!npy_has(t) || kind[0] != type_kind(t) || kind[1] != (char)('0' + bytes) || kind[2] != '\0')
            continue;
        if (!ordered || (order == '|' && bytes > 1))
            return refuse_type(p, descr, "no byte order");
        info->type = t;
        info->layout.swapped = order == '>' && bytes > 1;
        return true;
    }
    return refuse_type(p, descr, refused_kind(kind));
}

static bool parse_order(struct npy_parser *p, uint32_t *fortran_order)
{
    if (take_word(p, "True"))
        *fortran_order = 1;
    else if (take_word(p, "False"))
        *fortran_order = 0;
    else
        return expected(p, "True or False for fortran_order");
    return true;
}

static bool parse_key(struct npy_parser *p, unsigned seen, enum key *key)
{
    char name[STRING_BYTES];
    skip_space(p);
    const char *first = p->at;
    if (!parse_string(p, "one of the keys 'descr', 'fortran_order' and 'shape'", name))
        return false;
    for (unsigned k = KEY_DESCR; k <= KEY_SHAPE; k <<= 1)
        if (strcmp(name, key_names[k]) == 0) {
            *key = (enum key)k;
            if ((seen & k) == 0)
                return take(p, ':') || expected(p, "`:` after a key");
            p->at = first;
            return expected(p, "each key once");
        }
    p->at = first;
    return expected(p, "one of the keys 'descr', 'fortran_order' and 'shape'");
}

static bool parse_dictionary(struct npy_parser *p, struct array_info *info)
{
    unsigned seen = 0;
    if (!take(p, '{'))
        return expected(p, "a dictionary, which begins with `{`");
    bool comma = true;
    while (!take(p, '}')) {
        enum key key = KEY_DESCR;
        if (!comma)
            return expected(p, "`,` or `}` after a value");
        if (!parse_key(p, seen, &key))
            return false;
        seen |= key;
        if (!(key == KEY_DESCR   ? parse_type(p, info)
              : key == KEY_ORDER ? parse_order(p, &info->fortran_order)
                                 : parse_shape(p, info)))
            return false;
        comma = take(p, ',');
    }
    skip_space(p);
    if (p->at != p->end)
        return expected(p, "nothing but spaces after the dictionary");
    for (unsigned k = KEY_DESCR; k <= KEY_SHAPE; k <<= 1)
        if ((seen & k) == 0) {
            error_set(p->error, ALLFOLD_BAD_INPUT, ".npy header: expected the keys 'descr', 'fortran_order' and 'shape', found no '%s'",
                      key_names[k]);
            return false;
        }
    return true;
}

allfold_status npy_parse(const char *text, size_t bytes, struct array_info *info, struct error *error)
{
    struct npy_parser p = {.text = text, .at = text, .end = text + bytes, .error = error};
    info->dimensions = 0;
    if (!parse_dictionary(&p, info))
        return error->status;
    if (array_count(info->shape, info->dimensions, allfold_type_bytes(info->type), &info->count))
        return ALLFOLD_OK;
    return error_set(error, ALLFOLD_BAD_INPUT, ".npy header: expected a shape of " ARRAY_COUNT_RULE ", found a larger one");
}

static allfold_status read_place(const struct npy_place *place, uint64_t first, uint64_t bytes, void *to, struct error *error)
{
    if (place->memory == NULL)
        return input_read(place->file, (struct range){place->offset + first, bytes}, to, error);
    memcpy(to, place->memory + first, (size_t)bytes);
    return ALLFOLD_OK;
}

/* Reads version and length of the header. */
static allfold_status read_preamble(const struct npy_place *place, uint64_t *preamble, uint32_t *length, struct error *error)
{
    unsigned char head[NPY_MAGIC_BYTES + VERSION_BYTES + 4] = {0};
    const uint64_t have = u64_min(place->bytes, sizeof head);
    if (read_place(place, 0, have, head, error) != ALLFOLD_OK)
        return error->status;
    const unsigned major = head[NPY_MAGIC_BYTES], minor = head[NPY_MAGIC_BYTES + 1];
    const unsigned char *field = head + NPY_MAGIC_BYTES + VERSION_BYTES;
    *preamble = NPY_MAGIC_BYTES + VERSION_BYTES + (major == 1 ? 2 : 4);
    if (have < NPY_MAGIC_BYTES || memcmp(head, NPY_MAGIC, NPY_MAGIC_BYTES) != 0)
        return error_set(error, ALLFOLD_BAD_INPUT, "expected the .npy magic (byte 0x93 and NUMPY), found %s%s",
                         have == 0 ? "an empty file" : "other bytes", place->offset == 0 ? " (a raw file needs another name)" : "");
    if (have < NPY_MAGIC_BYTES + VERSION_BYTES || (major >= 1 && major <= 3 && have < *preamble))
        return error_set(error, ALLFOLD_BAD_INPUT, ".npy file: expected at least %" PRIu64 " bytes of header, found %" PRIu64
                         " bytes in all", *preamble, place->bytes);
    if (major < 1 || major > 3 || minor != 0)
        return error_set(error, ALLFOLD_BAD_INPUT, ".npy file: expected version 1.0, 2.0 or 3.0, found %u.%u", major, minor);
    *length = field[0] | (uint32_t)field[1] << 8;
    if (major > 1)
        *length |= (uint32_t)field[2] << 16 | (uint32_t)field[3] << 24;
    if (*length > HEADER_BYTES_LIMIT)
        return error_set(error, ALLFOLD_BAD_INPUT, ".npy file: expected a header of at most %" PRIu32 " bytes, found one of %" PRIu32,
                         HEADER_BYTES_LIMIT, *length);
    if (*length > place->bytes - *preamble)
        return error_set(error, ALLFOLD_BAD_INPUT, ".npy file: expected a header of %" PRIu32 " bytes, found that the file ends after %"
                         PRIu64 " of them", *length, place->bytes - *preamble);
    return ALLFOLD_OK;
}

static allfold_status check_size(const struct npy_place *place, uint64_t header, const struct array_info *info, struct error *error)
{
    const uint64_t data = info->count * allfold_type_bytes(info->type), have = place->bytes - header;
    if (data == have)
        return ALLFOLD_OK;
    return error_set(error, ALLFOLD_BAD_INPUT,
                     ".npy file: expected %" PRIu64 " %s elements, %" PRIu64 " bytes after the header of %" PRIu64
                     ", found %" PRIu64 " bytes: %" PRIu64 " bytes %s",
                     info->count, allfold_type_name(info->type), data, header, have,
                     have > data ? have - data : data - have, have > data ? "too many" : "are missing");
}

allfold_status npy_describe(const struct npy_place *place, struct array_info *info, struct error *error)
{
    uint64_t preamble = 0;
    uint32_t length = 0;
    if (read_preamble(place, &preamble, &length, error) != ALLFOLD_OK)
        return error->status;
    char *text = malloc((size_t)length + 1);
    if (text == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for a header of %" PRIu32 " bytes", length);
    info->plain = 1;
    info->layout.offset = place->offset + preamble + length;
    if (read_place(place, preamble, length, text, error) == ALLFOLD_OK && npy_parse(text, length, info, error) == ALLFOLD_OK)
        check_size(place, preamble + length, info, error);
    free(text);
    return error->status;
}

/* Spaces that NumPy leaves after the dictionary so that the axis along which files grow may be rewritten in place. */
#define GROWTH_DIGITS 21

size_t npy_header(const struct array_info *info, char header[NPY_HEADER_BYTES_MAX])
{
    const size_t bytes = allfold_type_bytes(info->type);
    char *out = header + NPY_MAGIC_BYTES + VERSION_BYTES + 2;
    out += sprintf(out, "{'descr': '%c%c%zu', 'fortran_order': %s, 'shape': (", bytes == 1 ? '|' : '<',
                   type_kind(info->type), bytes, info->fortran_order ? "True" : "False");
    for (uint32_t i = 0; i < info->dimensions; i++)
        out += sprintf(out, "%s%" PRIu64, i > 0 ? ", " : "", info->shape[i]);
    out += sprintf(out, "%s), }", info->dimensions == 1 ? "," : "");
    if (info->dimensions > 0) {
        const uint64_t growing = info->shape[info->fortran_order ? info->dimensions - 1 : 0];
        const int digits = snprintf(NULL, 0, "%" PRIu64, growing);
        out += sprintf(out, "%*s", GROWTH_DIGITS - digits, "");
    }
    const size_t used = (size_t)(out - header) + 1;
    const size_t total = (used / 64 + 1) * 64; /* NumPy pads with 1 to 64 spaces, never 0 */
    const size_t length = total - (NPY_MAGIC_BYTES + VERSION_BYTES + 2);
    memset(out, ' ', total - used);
    header[total - 1] = '\n';
    memcpy(header, NPY_MAGIC "\x01\x00", NPY_MAGIC_BYTES + VERSION_BYTES);
    header[NPY_MAGIC_BYTES + VERSION_BYTES] = (char)(length & 0xff);
    header[NPY_MAGIC_BYTES + VERSION_BYTES + 1] = (char)(length >> 8);
    return total;
}

/* By its magic. A name that ends in .npy is enough: a damaged .npy file must not pass for raw elements, whatever the user says of its
   type. */
static bool recognises_npy(const struct input_file *file)
{
    return (file->head_bytes >= NPY_MAGIC_BYTES && memcmp(file->head, NPY_MAGIC, NPY_MAGIC_BYTES) == 0)
           || file_name_ends(file->name, ".npy");
}

static allfold_status read_npy(const struct input_file *file, struct directory *directory, struct error *error)
{
    struct array_entry *const entry = directory_entry(directory, file, NULL, NULL);
    if (entry == NULL)
        return error->status;
    npy_describe(&(struct npy_place){.file = file, .bytes = file->bytes}, &entry->info, &entry->refused);
    directory_add(directory);
    return error->status;
}

const struct format format_npy = {.name = "npy", .recognises = recognises_npy, .read_directory = read_npy};
