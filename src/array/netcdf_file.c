/* Makes the header of classic NetCDF: see netcdf_file.h. The format: formats/netcdf.c. */
#include "array/netcdf_file.h"

#include "array/formats/swap.h"

#include <stdlib.h>
#include <string.h>

enum list_tag { DIMENSIONS = 10, VARIABLES, ATTRIBUTES };
#define EXACT_IN_DOUBLE (INT64_C(1) << 53)

size_t netcdf_type_bytes(enum netcdf_type type)
{
    switch (type) {
    case NETCDF_BYTE:
    case NETCDF_CHAR: return 1;
    case NETCDF_SHORT: return 2;
    case NETCDF_INT:
    case NETCDF_FLOAT: return 4;
    default: return 8;
    }
}

static uint64_t padded(uint64_t bytes) { return bytes + (4 - bytes % 4) % 4; }
static uint64_t bytes_of(const struct netcdf_values *values) { return values->count * netcdf_type_bytes(values->type); }

/* ---- values */

/* An integer; those of uint64 beyond int64 are INT64_MAX. */
static int64_t integer_at(allfold_type type, const void *values, uint64_t i)
{
    switch (type) {
    case ALLFOLD_INT8: return ((const int8_t *)values)[i];
    case ALLFOLD_INT16: return ((const int16_t *)values)[i];
    case ALLFOLD_INT32: return ((const int32_t *)values)[i];
    case ALLFOLD_INT64: return ((const int64_t *)values)[i];
    case ALLFOLD_UINT16: return ((const uint16_t *)values)[i];
    case ALLFOLD_UINT32: return ((const uint32_t *)values)[i];
    case ALLFOLD_UINT64: return (int64_t)u64_min(((const uint64_t *)values)[i], INT64_MAX);
    default: return ((const uint8_t *)values)[i];
    }
}

/* The type that holds all integers. */
static enum netcdf_type integer_type(allfold_type type, uint64_t count, const void *values)
{
    int64_t least = 0, most = 0;
    if (type == ALLFOLD_INT8 || type == ALLFOLD_BOOL)
        return NETCDF_BYTE;
    if (type == ALLFOLD_INT16 || type == ALLFOLD_UINT8)
        return NETCDF_SHORT;
    for (uint64_t i = 0; i < count; i++) {
        const int64_t value = integer_at(type, values, i);
        least = value < least ? value : least;
        most = value > most ? value : most;
    }
    if (least >= INT32_MIN && most <= INT32_MAX)
        return NETCDF_INT;
    if (least >= -EXACT_IN_DOUBLE && most <= EXACT_IN_DOUBLE)
        return NETCDF_DOUBLE;
    return type == ALLFOLD_UINT64 ? NETCDF_UINT64 : NETCDF_INT64;
}

static enum netcdf_type type_for(allfold_type type, uint64_t count, const void *values)
{
    return type == ALLFOLD_TYPE_NONE ? NETCDF_CHAR : type == ALLFOLD_F64 ? NETCDF_DOUBLE : type == ALLFOLD_F32 ? NETCDF_FLOAT
                                                                                       : integer_type(type, count, values);
}

static void store(enum netcdf_type type, int64_t value, void *to, uint64_t i)
{
    switch (type) {
    case NETCDF_BYTE: ((int8_t *)to)[i] = (int8_t)value; break;
    case NETCDF_SHORT: ((int16_t *)to)[i] = (int16_t)value; break;
    case NETCDF_INT: ((int32_t *)to)[i] = (int32_t)value; break;
    case NETCDF_DOUBLE: ((double *)to)[i] = (double)value; break;
    default: ((int64_t *)to)[i] = value;
    }
}

bool netcdf_convert(allfold_type type, uint64_t count, const void *values, struct netcdf_values *converted)
{
    if (type_kind(type) == 'f' && allfold_type_bytes(type) < sizeof(float))
        return false;
    converted->type = type_for(type, count, values);
    converted->count = count;
    const size_t bytes = netcdf_type_bytes(converted->type);
    const bool same = type == ALLFOLD_TYPE_NONE || type_kind(type) == 'f' || converted->type >= NETCDF_INT64;
    if ((converted->bytes = malloc((size_t)(count * bytes) + 1)) == NULL)
        return false;
    for (uint64_t i = 0; !same && i < count; i++)
        store(converted->type, integer_at(type, values, i), converted->bytes, i);
    swap_bytes(converted->bytes, same ? values : converted->bytes, count, bytes);
    return true;
}

/* ---- attributes */

static struct netcdf_attribute *find(const struct netcdf_attributes *attributes, const char *name)
{
    for (size_t i = 0; i < attributes->count; i++)
        if (strcmp(attributes->list[i].name, name) == 0)
            return &attributes->list[i];
    return NULL;
}

const struct netcdf_attribute *netcdf_find(const struct netcdf_attributes *attributes, const char *name) { return find(attributes, name); }

void netcdf_remove(struct netcdf_attributes *attributes, const char *name)
{
    struct netcdf_attribute *const found = find(attributes, name);
    if (found == NULL)
        return;
    free(found->values.bytes);
    attributes->count--;
    memmove(found, found + 1, (size_t)(attributes->list + attributes->count - found) * sizeof *found);
}

void netcdf_add(struct netcdf_file *file, struct netcdf_attributes *attributes, const struct array_attribute *attribute)
{
    struct netcdf_attribute added = {.name = ""};
    if (strlen(attribute->name) >= sizeof added.name || !netcdf_convert(attribute->type, attribute->count, attribute->values, &added.values))
        return;
    netcdf_remove(attributes, attribute->name);
    memcpy(added.name, attribute->name, strlen(attribute->name) + 1);
    struct netcdf_attribute *const longer = realloc(attributes->list, (attributes->count + 1) * sizeof *longer);
    if (longer == NULL) {
        file->no_memory = true;
        free(added.values.bytes);
        return;
    }
    attributes->list = longer;
    attributes->list[attributes->count++] = added;
}

void netcdf_add_text(struct netcdf_file *file, struct netcdf_attributes *attributes, const char *name, const char *text)
{
    netcdf_add(file, attributes, &(struct array_attribute){name, ALLFOLD_TYPE_NONE, strlen(text), text});
}

void netcdf_attributes_free(struct netcdf_attributes *attributes)
{
    for (size_t i = 0; i < attributes->count; i++)
        free(attributes->list[i].values.bytes);
    free(attributes->list);
    *attributes = (struct netcdf_attributes){.count = 0};
}

void netcdf_free(struct netcdf_file *file)
{
    for (int i = 0; i < file->variables; i++) {
        netcdf_attributes_free(&file->variable[i].attributes);
        free(file->variable[i].values.bytes);
    }
    netcdf_attributes_free(&file->attributes);
}

void netcdf_name(const char *name, char spelled[NETCDF_NAME_BYTES])
{
    const char *const slash = strrchr(name, '/');
    snprintf(spelled, NETCDF_NAME_BYTES, "%s", slash != NULL ? slash + 1 : name);
    for (char *c = spelled; *c != '\0'; c++) {
        const bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || *c == '_' || (*c & 0x80) != 0;
        if (!letter && (c == spelled || strchr("+-.@", *c) == NULL))
            *c = '_';
    }
    if (spelled[0] == '\0')
        strcpy(spelled, "_");
}

/* ---- the header */

struct header_writer {
    const struct netcdf_file *file;
    FILE *to;
};

static void put(const struct header_writer *h, uint64_t number, int bytes)
{
    while (bytes-- > 0)
        putc((int)(number >> 8 * bytes & 255), h->to);
}

static void put_count(const struct header_writer *h, uint64_t number) { put(h, number, h->file->version == 5 ? 8 : 4); }

static void put_padded(const struct header_writer *h, const void *bytes, uint64_t count)
{
    fwrite(bytes, 1, (size_t)count, h->to);
    put(h, 0, (int)(padded(count) - count));
}

static void put_name(const struct header_writer *h, const char *name)
{
    put_count(h, strlen(name));
    put_padded(h, name, strlen(name));
}

static void put_list(const struct header_writer *h, enum list_tag tag, uint64_t count)
{
    put(h, count > 0 ? tag : 0, 4);
    put_count(h, count);
}

static void put_attributes(const struct header_writer *h, const struct netcdf_attributes *attributes)
{
    put_list(h, ATTRIBUTES, attributes->count);
    for (size_t i = 0; i < attributes->count; i++) {
        const struct netcdf_values *const values = &attributes->list[i].values;
        put_name(h, attributes->list[i].name);
        put(h, values->type, 4);
        put_count(h, values->count);
        put_padded(h, values->bytes, bytes_of(values));
    }
}

static void put_variable(const struct header_writer *h, const struct netcdf_variable *variable)
{
    put_name(h, variable->name);
    put_count(h, variable->dimensions);
    for (uint32_t i = 0; i < variable->dimensions; i++)
        put_count(h, variable->ids[i]);
    put_attributes(h, &variable->attributes);
    put(h, variable->values.type, 4);
    put_count(h, padded(bytes_of(&variable->values)));
    put(h, variable->begin, h->file->version == 1 ? 4 : 8);
}

void netcdf_write_header(const struct netcdf_file *file, FILE *to)
{
    const struct header_writer h = {file, to};
    fprintf(to, "CDF%c", file->version);
    put_count(&h, 0); /* records */
    put_list(&h, DIMENSIONS, file->dimensions);
    for (uint32_t i = 0; i < file->dimensions; i++) {
        put_name(&h, file->dimension[i].name);
        put_count(&h, file->dimension[i].length);
    }
    put_attributes(&h, &file->attributes);
    put_list(&h, VARIABLES, (uint64_t)file->variables);
    for (int i = 0; i < file->variables; i++)
        put_variable(&h, &file->variable[i]);
}

/* ---- places */

/* The least version that holds types and sizes, but for the size of the file. */
static int least_version(const struct netcdf_file *file)
{
    for (int i = 0; i < file->variables; i++) {
        const struct netcdf_variable *const variable = &file->variable[i];
        bool wide = variable->values.type >= NETCDF_INT64 || bytes_of(&variable->values) > UINT32_MAX - 3;
        for (size_t k = 0; k < variable->attributes.count; k++)
            wide = wide || variable->attributes.list[k].values.type >= NETCDF_INT64;
        if (wide)
            return 5;
    }
    for (uint32_t i = 0; i < file->dimensions; i++)
        if (file->dimension[i].length > INT32_MAX - 3)
            return 5;
    return 1;
}

static void place(struct netcdf_file *file)
{
    file->bytes = file->header_bytes + file->room;
    for (int i = 0; i < file->variables; i++) {
        file->variable[i].begin = file->bytes;
        file->bytes += padded(bytes_of(&file->variable[i].values));
    }
}

static bool measure(struct netcdf_file *file)
{
    char *bytes = NULL;
    size_t count = 0;
    FILE *const memory = open_memstream(&bytes, &count);
    if (memory == NULL)
        return false;
    netcdf_write_header(file, memory);
    const bool done = fclose(memory) == 0;
    free(bytes);
    file->header_bytes = count;
    return done;
}

allfold_status netcdf_layout(struct netcdf_file *file, struct error *error)
{
    file->version = least_version(file);
    for (bool placed = false; !placed; placed = file->version != 1 || file->bytes <= INT32_MAX) {
        file->version = file->version == 1 && file->bytes > INT32_MAX ? 2 : file->version;
        if (file->no_memory || !measure(file))
            return error_set(error, ALLFOLD_NO_MEMORY, "no memory for the header of an output");
        place(file);
    }
    return ALLFOLD_OK;
}
