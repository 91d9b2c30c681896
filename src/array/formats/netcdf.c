/* Classic NetCDF, CDF-1, 2 and 5: variables of a shape each, big-endian. Those that have the record dimension lie interleaved, record by
   record. https://docs.unidata.ucar.edu/netcdf-c/current/file_format_specifications.html
   Sizes are computed from the shapes: those in the header (vsize) cannot express large variables, and some writers set them wrongly. */
#include "array/formats/cursor.h"
#include "array/formats/swap.h"

#include <inttypes.h>
#include <stdlib.h>

#define NAME_BYTES 1024
#define HEADER_BYTES_MAX ((uint64_t)256 << 20)
#define HEADER "NetCDF header" /* in messages */
#define STREAMING UINT64_MAX /* the number of records follows from the file's size */

enum tag { TAG_ABSENT = 0, TAG_DIMENSIONS = 10, TAG_VARIABLES = 11, TAG_ATTRIBUTES = 12 };

static const struct {
    const char *name;
    allfold_type type;
    uint64_t bytes;
} types[] = {{"none", ALLFOLD_TYPE_NONE, 0}, {"byte", ALLFOLD_INT8, 1},     {"char", ALLFOLD_TYPE_NONE, 1}, {"short", ALLFOLD_INT16, 2},
             {"int", ALLFOLD_INT32, 4},      {"float", ALLFOLD_F32, 4},     {"double", ALLFOLD_F64, 8},     {"ubyte", ALLFOLD_UINT8, 1},
             {"ushort", ALLFOLD_UINT16, 2},  {"uint", ALLFOLD_UINT32, 4},   {"int64", ALLFOLD_INT64, 8},    {"uint64", ALLFOLD_UINT64, 8}};

struct cdf_dimension {
    char *name;
    uint64_t length; /* of the record dimension 0 in the file; here the number of records */
    bool record;
};

struct cdf_variable {
    char *name;
    uint32_t file_type; /* nc_type, 1 to 11 */
    uint64_t dimensions;
    uint64_t ids[ARRAY_DIMENSIONS_MAX]; /* of its dimensions, if they are not too many */
    uint64_t attributes;                /* the byte at which they begin */
    uint64_t begin;                     /* byte of its first element */
    bool record;                        /* its first dimension is the record dimension */
    uint64_t count, bytes;              /* its elements, of a record if it has records */
};

struct cdf {
    unsigned version; /* 1, 2 or 5 */
    uint64_t records;
    uint64_t record_bytes; /* from the begin of a record to that of the next */
    struct cdf_dimension *dimensions;
    struct cdf_variable *variables;
    uint64_t dimension_count, variable_count;
    uint64_t attributes; /* the byte at which those of the file begin */
    uint64_t header_bytes;
};

/* The header while it is parsed. */
struct cdf_parser {
    struct cursor cursor;
    struct cdf *cdf;
};

static bool wrong(struct cdf_parser *p, uint64_t at, const char *expected, const char *found)
{
    return cursor_expected(&p->cursor, at, expected, found);
}

static bool get_u32(struct cdf_parser *p, uint32_t *number)
{
    const unsigned char *const bytes = cursor_take(&p->cursor, 4);
    if (bytes != NULL)
        *number = big_u32(bytes);
    return bytes != NULL;
}

/* A number that may not be negative: of 8 bytes in CDF-5, of 4 before. */
static bool get_number(struct cdf_parser *p, bool wide, uint64_t *number)
{
    const uint64_t at = p->cursor.at;
    const unsigned char *const bytes = cursor_take(&p->cursor, wide ? 8 : 4);
    if (bytes == NULL)
        return false;
    *number = wide ? big_u64(bytes) : big_u32(bytes);
    return *number <= (wide ? (uint64_t)INT64_MAX : INT32_MAX) || wrong(p, at, "a number that is not negative", "a negative one");
}

static bool get_count(struct cdf_parser *p, uint64_t *number) { return get_number(p, p->cdf->version == 5, number); }

static uint64_t padded(uint64_t bytes) { return bytes + (4 - bytes % 4) % 4; }

/* Names and values are filled up to whole words. */
static bool skip_padded(struct cdf_parser *p, uint64_t bytes) { return bytes <= FILE_BYTES_MAX && cursor_skip(&p->cursor, padded(bytes)); }

static bool get_name(struct cdf_parser *p, char name[NAME_BYTES])
{
    uint64_t bytes;
    const uint64_t at = p->cursor.at;
    if (!get_count(p, &bytes))
        return false;
    if (bytes >= NAME_BYTES)
        return wrong(p, at, "a name of less than 1024 bytes", "a longer one");
    const unsigned char *const text = cursor_take(&p->cursor, (size_t)padded(bytes));
    if (text == NULL)
        return false;
    memcpy(name, text, (size_t)bytes);
    name[bytes] = '\0';
    return (strlen(name) == bytes && bytes > 0) || wrong(p, at, "a name without zeros", "another one");
}

static bool out_of_memory(struct cdf_parser *p)
{
    error_set(p->cursor.error, ALLFOLD_NO_MEMORY, "no memory for its header");
    return false;
}

/* The head of a list: its tag, or ABSENT, and the number of its items, of at least `least` bytes each. */
static bool get_list(struct cdf_parser *p, enum tag tag, uint64_t least, uint64_t *count)
{
    uint32_t found = 0;
    const uint64_t at = p->cursor.at;
    if (!get_u32(p, &found) || !get_count(p, count))
        return false;
    if (found != (uint32_t)tag && (found != TAG_ABSENT || *count != 0))
        return wrong(p, at, "a list of dimensions, attributes and variables, in this order", "another tag");
    return *count <= (p->cursor.end - p->cursor.at) / least || wrong(p, at, "a list within the header", "a longer one");
}

static bool get_dimensions(struct cdf_parser *p)
{
    uint64_t count, records = 0;
    char name[NAME_BYTES];
    struct cdf *const cdf = p->cdf;
    if (!get_list(p, TAG_DIMENSIONS, 12, &count))
        return false;
    if ((cdf->dimensions = calloc((size_t)count + 1, sizeof *cdf->dimensions)) == NULL)
        return out_of_memory(p);
    for (; cdf->dimension_count < count; cdf->dimension_count++) {
        struct cdf_dimension *const dimension = &cdf->dimensions[cdf->dimension_count];
        const uint64_t at = p->cursor.at;
        if (!get_name(p, name) || !get_count(p, &dimension->length))
            return false;
        dimension->record = dimension->length == 0;
        records += dimension->record;
        if (records > 1)
            return wrong(p, at, "one record dimension", "a second one");
        if ((dimension->name = strdup(name)) == NULL)
            return out_of_memory(p);
    }
    return true;
}

static bool get_type(struct cdf_parser *p, uint32_t *type)
{
    const uint64_t at = p->cursor.at;
    return get_u32(p, type)
           && ((*type >= 1 && *type <= (p->cdf->version == 5 ? 11 : 6)) || wrong(p, at, "a type of this version of the format", "another number"));
}

/* The head of an attribute, whose values come next. */
static bool get_attribute(struct cdf_parser *p, char name[NAME_BYTES], uint32_t *type, uint64_t *count)
{
    if (!get_name(p, name))
        return false;
    const uint64_t at = p->cursor.at;
    if (!get_type(p, type) || !get_count(p, count))
        return false;
    return *count <= FILE_BYTES_MAX / 8 || wrong(p, at, "values within the header", "more");
}

static bool skip_attributes(struct cdf_parser *p)
{
    char name[NAME_BYTES];
    uint32_t type = 0;
    uint64_t count, values;
    if (!get_list(p, TAG_ATTRIBUTES, 12, &count))
        return false;
    for (uint64_t i = 0; i < count; i++)
        if (!get_attribute(p, name, &type, &values) || !skip_padded(p, values * types[type].bytes))
            return false;
    return true;
}

/* The shape, of any number of dimensions, and the elements of the variable, or of one of its records. */
static bool get_shape(struct cdf_parser *p, struct cdf_variable *variable)
{
    const uint64_t at = p->cursor.at;
    if (!get_count(p, &variable->dimensions))
        return false;
    variable->count = 1;
    for (uint64_t i = 0; i < variable->dimensions; i++) {
        uint64_t id;
        if (!get_count(p, &id))
            return false;
        if (id >= p->cdf->dimension_count)
            return wrong(p, at, "a shape of dimensions of the file", "a number of none");
        const struct cdf_dimension *const dimension = &p->cdf->dimensions[id];
        if (dimension->record && i > 0)
            return wrong(p, at, "the record dimension in front of the others", "it behind one");
        if (dimension->record)
            variable->record = true;
        else if (__builtin_mul_overflow(variable->count, dimension->length, &variable->count))
            return wrong(p, at, "less than 2^63 bytes in a variable", "more");
        if (i < ARRAY_DIMENSIONS_MAX)
            variable->ids[i] = id;
    }
    return true;
}

static bool get_variable(struct cdf_parser *p, struct cdf_variable *variable)
{
    char name[NAME_BYTES];
    if (!get_name(p, name) || !get_shape(p, variable))
        return false;
    variable->attributes = p->cursor.at;
    if (!skip_attributes(p) || !get_type(p, &variable->file_type))
        return false;
    const uint64_t at = p->cursor.at;
    if (!cursor_skip(&p->cursor, p->cdf->version == 5 ? 8 : 4) /* vsize */ || !get_number(p, p->cdf->version != 1, &variable->begin))
        return false;
    if (__builtin_mul_overflow(variable->count, types[variable->file_type].bytes, &variable->bytes) || variable->bytes > FILE_BYTES_MAX - 4)
        return wrong(p, at, "less than 2^63 bytes in a variable", "more");
    variable->name = strdup(name);
    return variable->name != NULL || out_of_memory(p);
}

static bool get_variables(struct cdf_parser *p)
{
    uint64_t count;
    struct cdf *const cdf = p->cdf;
    if (!get_list(p, TAG_VARIABLES, 32, &count))
        return false;
    if (count > HEADER_BYTES_MAX / sizeof *cdf->variables)
        return wrong(p, p->cursor.at, "fewer variables", "more than allfold reads");
    if ((cdf->variables = calloc((size_t)count + 1, sizeof *cdf->variables)) == NULL)
        return out_of_memory(p);
    for (; cdf->variable_count < count; cdf->variable_count++)
        if (!get_variable(p, &cdf->variables[cdf->variable_count]))
            return false;
    return true;
}

/* Bytes of a record: those of all variables that have records, each filled up to whole words unless it is alone. */
static bool measure_records(struct cdf_parser *p, uint64_t *first)
{
    struct cdf *const cdf = p->cdf;
    uint64_t variables = 0, alone = 0, total = 0;
    *first = UINT64_MAX;
    for (uint64_t i = 0; i < cdf->variable_count; i++) {
        const struct cdf_variable *const v = &cdf->variables[i];
        if (!v->record)
            continue;
        variables++;
        alone = v->bytes;
        *first = u64_min(*first, v->begin);
        if (__builtin_add_overflow(total, padded(v->bytes), &total) || total > FILE_BYTES_MAX)
            return wrong(p, p->cursor.at, "less than 2^63 bytes in a record", "more");
    }
    cdf->record_bytes = variables == 1 ? alone : total;
    return true;
}

static void set_records(struct cdf *cdf, uint64_t file_bytes, uint64_t first)
{
    if (cdf->records == STREAMING)
        cdf->records = cdf->record_bytes > 0 && first < file_bytes ? (file_bytes - first) / cdf->record_bytes : 0;
    for (uint64_t i = 0; i < cdf->dimension_count; i++)
        if (cdf->dimensions[i].record)
            cdf->dimensions[i].length = cdf->records;
}

static bool parse(struct cdf_parser *p)
{
    uint64_t first;
    struct cdf *const cdf = p->cdf;
    const unsigned char *const head = cursor_take(&p->cursor, 4);
    if (head == NULL)
        return false;
    cdf->version = head[3];
    if (memcmp(head, "CDF", 3) != 0 || (cdf->version != 1 && cdf->version != 2 && cdf->version != 5))
        return wrong(p, 0, "CDF and the version 1, 2 or 5", "other bytes");
    const size_t bytes = cdf->version == 5 ? 8 : 4;
    const unsigned char *const records = cursor_take(&p->cursor, bytes);
    if (records == NULL)
        return false;
    cdf->records = bytes == 8 ? big_u64(records) : big_u32(records) == UINT32_MAX ? STREAMING : big_u32(records);
    if (cdf->records != STREAMING && cdf->records > (bytes == 8 ? (uint64_t)INT64_MAX : INT32_MAX))
        return wrong(p, 4, "a number of records", "a negative one");
    if (!get_dimensions(p))
        return false;
    cdf->attributes = p->cursor.at;
    if (!skip_attributes(p) || !get_variables(p) || !measure_records(p, &first))
        return false;
    cdf->header_bytes = p->cursor.at;
    set_records(cdf, p->cursor.file->bytes, first);
    return true;
}

static void free_cdf(struct cdf *cdf)
{
    for (uint64_t i = 0; i < cdf->dimension_count; i++)
        free(cdf->dimensions[i].name);
    for (uint64_t i = 0; i < cdf->variable_count; i++)
        free(cdf->variables[i].name);
    free(cdf->dimensions);
    free(cdf->variables);
}

/* ---- attributes */

/* A variable's. */
struct cdf_attributes {
    const struct input_file *file;
    const struct cdf *cdf;
    const struct cdf_variable *variable;
};

/* The values of an attribute that comes next. */
static bool get_values(struct cdf_parser *p, const char *name, uint32_t type, uint64_t count, struct attribute *attribute)
{
    const uint64_t bytes = count * types[type].bytes;
    if (bytes > sizeof attribute->values) {
        error_set(p->cursor.error, ALLFOLD_UNSUPPORTED, "attribute %s: expected at most %zu bytes, found %" PRIu64, name,
                  sizeof attribute->values, bytes);
        return false;
    }
    const unsigned char *const values = cursor_take(&p->cursor, (size_t)bytes);
    if (values == NULL)
        return false;
    memset(attribute, 0, sizeof *attribute);
    attribute->type = types[type].type;
    attribute->count = count;
    memcpy(attribute->values, values, (size_t)bytes);
    swap_bytes(attribute->values, attribute->values, count, types[type].bytes);
    return true;
}

/* An attribute_find (encoding.h). user: the struct cdf_attributes. */
static bool find_attribute(void *user, const char *name, struct attribute *attribute, struct error *error)
{
    const struct cdf_attributes *const a = user;
    struct cdf known = *a->cdf;
    struct cdf_parser p = {.cursor = {.error = error}, .cdf = &known};
    char found[NAME_BYTES];
    uint32_t type = 0;
    uint64_t attributes, count;
    cursor_open(&p.cursor, a->file, HEADER, (struct range){a->variable->attributes, a->cdf->header_bytes - a->variable->attributes});
    if (!get_list(&p, TAG_ATTRIBUTES, 12, &attributes))
        return false;
    for (uint64_t i = 0; i < attributes && get_attribute(&p, found, &type, &count); i++) {
        if (strcmp(found, name) == 0)
            return get_values(&p, name, type, count, attribute);
        if (!skip_padded(&p, count * types[type].bytes))
            break;
    }
    return false;
}

/* ---- the directory */

static bool recognises_cdf(const struct input_file *file)
{
    return file->head_bytes >= 4 && memcmp(file->head, "CDF", 3) == 0 && (file->head[3] == 1 || file->head[3] == 2 || file->head[3] == 5);
}

/* Where the elements lie. */
static void set_layout(const struct cdf_attributes *a, struct array_info *info)
{
    const struct cdf_variable *const v = a->variable;
    info->plain = 1;
    info->layout = (struct array_layout){.offset = v->begin, .swapped = types[v->file_type].bytes > 1};
    if (v->record && v->bytes != a->cdf->record_bytes) {
        info->layout.run = v->count;
        info->layout.stride = a->cdf->record_bytes;
    }
}

static allfold_status describe(struct cdf_attributes *a, struct array_entry *entry)
{
    const struct cdf_variable *const v = a->variable;
    struct array_info *const info = &entry->info;
    struct error *const why = &entry->refused;
    info->type = types[v->file_type].type;
    entry->type_text = info->type == ALLFOLD_TYPE_NONE ? types[v->file_type].name : NULL;
    entry->shapeless = v->dimensions > ARRAY_DIMENSIONS_MAX;
    if (entry->shapeless)
        return error_set(why, ALLFOLD_UNSUPPORTED, "expected at most %d dimensions, found %" PRIu64, ARRAY_DIMENSIONS_MAX, v->dimensions);
    info->dimensions = (uint32_t)v->dimensions;
    for (uint32_t i = 0; i < info->dimensions; i++)
        info->shape[i] = a->cdf->dimensions[v->ids[i]].length;
    set_layout(a, info);
    if (info->type == ALLFOLD_TYPE_NONE)
        return error_set(why, ALLFOLD_UNSUPPORTED, "expected numbers, found characters");
    if (v->begin < a->cdf->header_bytes && (!v->record || a->cdf->records > 0))
        return error_set(why, ALLFOLD_BAD_INPUT, "expected elements behind the header of %" PRIu64 " bytes, found that they begin at byte %"
                         PRIu64, a->cdf->header_bytes, v->begin);
    return encoding_describe(find_attribute, a, &info->type, &info->encoding, why);
}

static void add_variable(struct cdf_attributes *a, struct directory *directory)
{
    const struct cdf_variable *const v = a->variable;
    const char *names[ARRAY_DIMENSIONS_MAX];
    struct array_entry *const entry = directory_entry(directory, a->file, v->name, NULL);
    if (entry == NULL)
        return;
    describe(a, entry);
    for (uint32_t i = 0; i < entry->info.dimensions; i++)
        names[i] = a->cdf->dimensions[v->ids[i]].name;
    entry->dimension_names = names;
    directory_add(directory);
}

static allfold_status read_cdf(const struct input_file *file, struct directory *directory, struct error *error)
{
    struct cdf cdf = {.version = 0};
    struct cdf_parser p = {.cursor = {.error = error}, .cdf = &cdf};
    cursor_open(&p.cursor, file, HEADER, (struct range){0, HEADER_BYTES_MAX});
    if (parse(&p))
        for (uint64_t i = 0; i < cdf.variable_count; i++)
            add_variable(&(struct cdf_attributes){file, &cdf, &cdf.variables[i]}, directory);
    free_cdf(&cdf);
    return error->status;
}

/* Visits those of a list that begins at this byte, but for ones that are longer than the cursor's window. */
static void visit_list(struct cdf_parser *p, uint64_t at, attribute_visit *visit, void *user)
{
    _Alignas(8) unsigned char values[CURSOR_WINDOW_BYTES];
    char name[NAME_BYTES];
    uint32_t type = 0;
    uint64_t attributes, count;
    cursor_open(&p->cursor, p->cursor.file, HEADER, (struct range){at, p->cdf->header_bytes - at});
    if (!get_list(p, TAG_ATTRIBUTES, 12, &attributes))
        return;
    for (uint64_t i = 0; i < attributes && get_attribute(p, name, &type, &count); i++) {
        const uint64_t bytes = padded(count * types[type].bytes);
        const unsigned char *const found = bytes <= sizeof values ? cursor_take(&p->cursor, (size_t)bytes) : NULL;
        if (found != NULL) {
            memcpy(values, found, (size_t)bytes);
            swap_bytes(values, values, count, types[type].bytes);
            visit(user, &(struct array_attribute){name, types[type].type, count, values});
        } else if (!cursor_skip(&p->cursor, bytes)) {
            return;
        }
    }
}

static allfold_status visit_attributes(const struct input_file *file, const char *array, attribute_visit *visit, void *user, struct error *error)
{
    struct cdf cdf = {.version = 0};
    struct cdf_parser p = {.cursor = {.error = error}, .cdf = &cdf};
    cursor_open(&p.cursor, file, HEADER, (struct range){0, HEADER_BYTES_MAX});
    if (parse(&p) && array == NULL)
        visit_list(&p, cdf.attributes, visit, user);
    for (uint64_t i = 0; i < cdf.variable_count && array != NULL && error->status == ALLFOLD_OK; i++)
        if (strcmp(cdf.variables[i].name, array) == 0)
            visit_list(&p, cdf.variables[i].attributes, visit, user);
    free_cdf(&cdf);
    return error->status;
}

const struct format format_netcdf = {
    .name = "netcdf", .recognises = recognises_cdf, .read_directory = read_cdf, .visit_attributes = visit_attributes, .named = true};
