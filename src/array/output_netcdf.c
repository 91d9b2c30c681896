/* Writes results along an axis as classic NetCDF, without a library: a variable for each array of results, with the
   dimensions that are left, the coordinates that the input's file has for them, and the attributes of the variable that
   was folded. The format: netcdf_file.c; the file is whole or absent, as all outputs are. */
#include "array/array.h"
#include "array/formats/parts.h"
#include "array/netcdf_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    COMMAND_BYTES = 4096,               /* of the history; a longer one is cut */
    NAME_ROOM = ARRAY_PATH_BYTES + NETCDF_NAME_BYTES
};

/* ---- what the folds mean in NetCDF's conventions */

enum result_units { NO_UNITS, SAME_UNITS, SQUARED_UNITS };

/* By the names of results: how CF's cell_methods call them (NULL: it has no word), and the units of the values. */
static const struct meaning {
    const char *name, *method;
    enum result_units units;
    bool places; /* indices or counts, which are below the length of the axis or equal to it */
} meanings[] = {{"sum", "sum", SAME_UNITS, false},          {"mean", "mean", SAME_UNITS, false},
                {"min", "minimum", SAME_UNITS, false},      {"max", "maximum", SAME_UNITS, false},
                {"std", "standard_deviation", SAME_UNITS, false}, {"variance", "variance", SQUARED_UNITS, false},
                {"norminf", "maximum_absolute_value", SAME_UNITS, false}, {"norm1", NULL, SAME_UNITS, false},
                {"norm2", NULL, SAME_UNITS, false},         {"value", NULL, SAME_UNITS, false},
                {"count", NULL, NO_UNITS, true},            {"nan_count", NULL, NO_UNITS, true},
                {"argmin", NULL, NO_UNITS, true},           {"argmax", NULL, NO_UNITS, true}};

static struct meaning meaning_of(const char *name)
{
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (strcmp(name, meanings[i].name) == 0)
            return meanings[i];
    return (struct meaning){name, NULL, NO_UNITS, false};
}

static bool is_folded(const struct output_about *about, uint32_t dimension) { return (about->folded >> dimension & 1) != 0; }

/* ---- the input's file */

struct collecting {
    struct netcdf_file *file;
    struct netcdf_attributes *to;
};

/* Attributes that are not true of results, or name variables that are not there. */
static bool is_left_out(const char *name)
{
    static const char *const left[] = {"_FillValue", "missing_value", "scale_factor", "add_offset", "_Unsigned", "valid_min", "valid_max", "valid_range",
                                       "actual_range", "coordinates", "grid_mapping", "cell_measures", "ancillary_variables", "bounds", "climatology",
                                       "formula_terms"};
    for (size_t i = 0; i < sizeof left / sizeof *left; i++)
        if (strcmp(name, left[i]) == 0)
            return true;
    return false;
}

static void collect(void *user, const struct array_attribute *attribute)
{
    const struct collecting *const c = user;
    if (!is_left_out(attribute->name))
        netcdf_add(c->file, c->to, attribute);
}

/* Of the whole file only what tells its convention and its history. */
static void collect_global(void *user, const struct array_attribute *attribute)
{
    if (strcmp(attribute->name, "Conventions") == 0 || strcmp(attribute->name, "history") == 0)
        collect(user, attribute);
}

static void collect_from(struct netcdf_file *file, struct netcdf_attributes *to, const char *path, const char *array)
{
    struct error ignored = {.status = ALLFOLD_OK}; /* the file was read before */
    struct collecting c = {file, to};
    array_attributes(path, array, array != NULL ? collect : collect_global, &c, &ignored);
}

/* ---- coordinates */

static bool are_equal(const struct netcdf_attributes *a, const struct netcdf_attributes *b)
{
    bool equal = a->count == b->count;
    for (size_t i = 0; equal && i < a->count; i++) {
        const struct netcdf_attribute *const other = netcdf_find(b, a->list[i].name);
        equal = other != NULL && other->values.type == a->list[i].values.type && other->values.count == a->list[i].values.count
                && memcmp(other->values.bytes, a->list[i].values.bytes, other->values.count * netcdf_type_bytes(other->values.type)) == 0;
    }
    return equal;
}

/* Whether the coordinate says the same of itself in all files that are joined: else its numbers may not mean the same. */
static bool agree(struct netcdf_file *file, const struct array_info *input, const char *dimension, bool in_group, const struct netcdf_attributes *first)
{
    bool same = true;
    char name[NAME_ROOM];
    for (uint64_t i = 1; same && i < array_files(input); i++) {
        struct netcdf_attributes found = {.count = 0};
        array_coordinate_name(array_member(input, i), dimension, in_group, name, sizeof name);
        collect_from(file, &found, array_file(input, i), name);
        same = are_equal(first, &found);
        netcdf_attributes_free(&found);
    }
    return same;
}

/* Adds the coordinate of a dimension, number id of the file's, if the input's file has one. */
static void add_coordinate(struct netcdf_file *file, struct output_about *about, uint32_t dimension, uint32_t id)
{
    const struct array_info *const input = about->input;
    const char *const called = array_dimension_name(input, dimension);
    struct netcdf_variable *const variable = &file->variable[file->variables];
    for (int in_group = 1; in_group >= 0; in_group--) {
        char name[NAME_ROOM];
        struct array_coordinate found;
        if (!array_coordinate_read(input, dimension, in_group != 0, &found))
            continue;
        const bool converted = netcdf_convert(found.type, found.count, found.elements, &variable->values);
        free(found.elements);
        if (!converted)
            continue;
        array_coordinate_name(array_member(input, 0), called, in_group != 0, name, sizeof name);
        collect_from(file, &variable->attributes, array_file(input, 0), name);
        if (found.differs || (dimension == 0 && !agree(file, input, called, in_group != 0, &variable->attributes))) {
            snprintf(about->note, sizeof about->note, "the coordinate %.100s is left out: %s not the same in all files", called,
                     found.differs ? "it is" : "its attributes are");
            netcdf_attributes_free(&variable->attributes);
            free(variable->values.bytes);
            variable->values.bytes = NULL;
            return;
        }
        memcpy(variable->name, file->dimension[id].name, sizeof variable->name);
        variable->dimensions = 1;
        variable->ids[0] = id;
        file->variables++;
        return;
    }
}

/* ---- dimensions and results */

static void name_dimension(const struct array_info *input, uint32_t dimension, char name[NETCDF_NAME_BYTES])
{
    if (input->names[0] != '\0')
        netcdf_name(array_dimension_name(input, dimension), name);
    else
        snprintf(name, NETCDF_NAME_BYTES, "dim_%" PRIu32, dimension);
}

/* Adds the dimensions of results, in the order in which their elements lie, and the coordinates that they have. */
static allfold_status add_dimensions(struct netcdf_file *file, struct output_about *about, struct error *error)
{
    const struct array_info *const input = about->input;
    for (uint32_t i = 0; i < input->dimensions; i++) {
        const uint32_t dimension = input->fortran_order ? input->dimensions - 1 - i : i, id = file->dimensions;
        const bool folded = is_folded(about, dimension);
        char *const name = file->dimension[id].name;
        if (folded && !about->keeps)
            continue;
        name_dimension(input, dimension, name);
        for (uint32_t k = 0; k < id; k++)
            if (strcmp(file->dimension[k].name, name) == 0)
                snprintf(name, NETCDF_NAME_BYTES, "dim_%" PRIu32, dimension);
        file->dimension[id].length = folded ? 1 : input->shape[dimension];
        if (file->dimension[id].length == 0)
            return error_set(error, ALLFOLD_UNSUPPORTED, "NetCDF has no dimension of length 0, as %.100s is: expected .npy or .npz", name);
        file->dimensions++;
        if (!folded && input->names[0] != '\0')
            add_coordinate(file, about, dimension, id);
    }
    return ALLFOLD_OK;
}

/* "time: lat: mean", behind what the variable says already. */
static void add_method(struct netcdf_file *file, struct netcdf_variable *variable, const struct output_about *about, const char *method)
{
    const struct netcdf_attribute *const before = netcdf_find(&variable->attributes, "cell_methods");
    const int bytes = before != NULL ? (int)u64_min(before->values.count, 512) : 0;
    char text[2048], name[NETCDF_NAME_BYTES];
    int length = snprintf(text, sizeof text, "%.*s%s", bytes, before != NULL ? (const char *)before->values.bytes : "", bytes > 0 ? " " : "");
    for (uint32_t i = 0; i < about->input->dimensions && length < (int)sizeof text - 2 * NETCDF_NAME_BYTES; i++) {
        if (!is_folded(about, i))
            continue;
        name_dimension(about->input, i, name);
        length += snprintf(text + length, sizeof text - (size_t)length, "%s: ", name);
    }
    snprintf(text + length, sizeof text - (size_t)length, "%s", method);
    netcdf_add_text(file, &variable->attributes, "cell_methods", text);
}

static void mend_units(struct netcdf_file *file, struct netcdf_variable *variable, enum result_units units)
{
    const struct netcdf_attribute *const found = netcdf_find(&variable->attributes, "units");
    char text[512];
    if (found == NULL || units == SAME_UNITS)
        return;
    snprintf(text, sizeof text, "(%.*s)^2", (int)u64_min(found->values.count, 256), (const char *)found->values.bytes);
    if (units == SQUARED_UNITS && found->values.type == NETCDF_CHAR)
        netcdf_add_text(file, &variable->attributes, "units", text);
    else
        netcdf_remove(&variable->attributes, "units");
    netcdf_remove(&variable->attributes, "standard_name");
}

/* What stands for the results of rows that have none, since all of their elements are missing. */
static void add_fill(struct netcdf_file *file, struct netcdf_variable *variable)
{
    const double nan = (double)NAN;
    const float nan_f32 = NAN;
    const int32_t no_index = -1;
    if (variable->values.type == NETCDF_DOUBLE)
        netcdf_add(file, &variable->attributes, &(struct array_attribute){"_FillValue", ALLFOLD_F64, 1, &nan});
    else if (variable->values.type == NETCDF_FLOAT)
        netcdf_add(file, &variable->attributes, &(struct array_attribute){"_FillValue", ALLFOLD_F32, 1, &nan_f32});
    else if (variable->values.type == NETCDF_INT)
        netcdf_add(file, &variable->attributes, &(struct array_attribute){"_FillValue", ALLFOLD_INT32, 1, &no_index});
}

/* The type of a variable of results. Indices and counts take the shorter one if the axis allows. False: the format has
   none. */
static bool type_of_results(const struct output_about *about, const struct meaning *meaning, allfold_type type, enum netcdf_type *found)
{
    uint64_t length = 1;
    for (uint32_t i = 0; i < about->input->dimensions; i++)
        length *= is_folded(about, i) ? about->input->shape[i] : 1;
    switch (type) {
    case ALLFOLD_F64: *found = NETCDF_DOUBLE; return true;
    case ALLFOLD_F32: *found = NETCDF_FLOAT; return true;
    case ALLFOLD_INT64: *found = meaning->places && length <= INT32_MAX ? NETCDF_INT : NETCDF_INT64; return true;
    case ALLFOLD_UINT64: *found = meaning->places && length <= INT32_MAX ? NETCDF_INT : NETCDF_UINT64; return true;
    default: return false;
    }
}

/* A variable with the name of a dimension would be taken for its coordinate. */
static bool is_taken(const struct netcdf_file *file, const char *name)
{
    for (uint32_t i = 0; i < file->dimensions; i++)
        if (strcmp(file->dimension[i].name, name) == 0)
            return true;
    for (int i = 0; i < file->variables; i++)
        if (strcmp(file->variable[i].name, name) == 0)
            return true;
    return false;
}

/* The variable that was folded, "tas"; if there are several results "tas_mean", and of an array without a name "mean". */
static void name_results(const struct netcdf_file *file, const struct output_about *about, const struct output_arrays *arrays, int i,
                         char name[NETCDF_NAME_BYTES])
{
    char base[NETCDF_NAME_BYTES];
    const char *const member = array_member(about->input, 0);
    netcdf_name(member, base);
    if (member[0] == '\0')
        snprintf(name, NETCDF_NAME_BYTES, "%s", arrays->names[i]);
    else
        snprintf(name, NETCDF_NAME_BYTES, arrays->count > 1 ? "%.*s_%s" : "%.*s", NETCDF_NAME_BYTES - 40, base, arrays->names[i]);
    for (int k = 1; is_taken(file, name); k++)
        snprintf(name, NETCDF_NAME_BYTES, k == 1 ? "%.*s_%s_result" : "%.*s_%s_result%d", NETCDF_NAME_BYTES - 60, base, arrays->names[i], k);
}

static allfold_status add_results(struct netcdf_file *file, const struct output_about *about, const struct output_arrays *arrays, struct error *error)
{
    for (int i = 0; i < arrays->count; i++) {
        struct netcdf_variable *const variable = &file->variable[file->variables];
        const struct meaning meaning = meaning_of(arrays->names[i]);
        if (!type_of_results(about, &meaning, arrays->types[i], &variable->values.type))
            return error_set(error, ALLFOLD_UNSUPPORTED, "NetCDF has no %s: expected --output-type=f32 or f64", allfold_type_name(arrays->types[i]));
        name_results(file, about, arrays, i, variable->name);
        variable->values.count = arrays->info->count;
        variable->dimensions = file->dimensions;
        for (uint32_t k = 0; k < file->dimensions; k++)
            variable->ids[k] = k;
        collect_from(file, &variable->attributes, array_file(about->input, 0), array_member(about->input, 0));
        mend_units(file, variable, meaning.units);
        if (meaning.method != NULL)
            add_method(file, variable, about, meaning.method);
        else
            netcdf_remove(&variable->attributes, "cell_methods");
        if (about->input->missing == MISSING_OMIT && encoding_has_missing(&about->input->encoding) && strstr(arrays->names[i], "count") == NULL)
            add_fill(file, variable);
        file->variables++;
    }
    return ALLFOLD_OK;
}

/* The command, with the time, before what the file's history is already. A file that outlives its run leaves room for the
   command of the run that goes on with it: all else must have the same place. */
static void add_history(struct netcdf_file *file, const struct output_about *about, bool outlives)
{
    char stamp[32], command[COMMAND_BYTES + 1], *text = NULL;
    size_t bytes, length = 0;
    const time_t now = time(NULL);
    struct tm utc;
    collect_from(file, &file->attributes, array_file(about->input, 0), NULL);
    const struct netcdf_attribute *const before = netcdf_find(&file->attributes, "history");
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    for (int i = 1; i < about->word_count && length < COMMAND_BYTES; i++)
        length += (size_t)snprintf(command + length, sizeof command - length, " %s", about->words[i]);
    FILE *const memory = open_memstream(&text, &bytes);
    if (memory == NULL)
        return;
    fprintf(memory, "%s: allfold%s", stamp, length > 0 ? command : "");
    if (before != NULL)
        fprintf(memory, "\n%.*s", (int)before->values.count, (const char *)before->values.bytes);
    if (fclose(memory) == 0)
        netcdf_add_text(file, &file->attributes, "history", text);
    const uint64_t most = bytes + COMMAND_BYTES - u64_min(length, COMMAND_BYTES);
    file->room = outlives ? (most + 3) / 4 * 4 - (bytes + 3) / 4 * 4 : 0;
    free(text);
}

/* ---- the file */

/* Writes the header and the coordinates. */
static allfold_status write_frame(const struct netcdf_file *file, const struct replacement *made, struct error *error)
{
    char *header = NULL;
    size_t bytes;
    FILE *const memory = open_memstream(&header, &bytes);
    if (memory != NULL)
        netcdf_write_header(file, memory);
    if (memory == NULL || fclose(memory) != 0)
        error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory for its header", file_shown(made->path));
    else
        file_write(&(struct file_range){made->descriptor, made->path, 0, bytes}, header, error);
    for (int i = 0; i < file->variables && error->status == ALLFOLD_OK; i++) {
        const struct netcdf_values *const values = &file->variable[i].values;
        if (values->bytes != NULL)
            file_write(&(struct file_range){made->descriptor, made->path, file->variable[i].begin, values->count * netcdf_type_bytes(values->type)},
                       values->bytes, error);
    }
    free(header);
    return error->status;
}

static void describe_outputs(const struct netcdf_file *file, const struct output_arrays *arrays, const struct replacement *made, struct output *outputs)
{
    for (int i = 0; i < arrays->count; i++) {
        const struct netcdf_variable *const variable = &file->variable[file->variables - arrays->count + i];
        outputs[i] = (struct output){.file = *made, .type = arrays->types[i], .count = arrays->info->count, .data_offset = variable->begin,
                                     .written = variable->values.type == NETCDF_INT ? ALLFOLD_INT32 : arrays->types[i], .swapped = 1};
    }
}

static allfold_status create(struct netcdf_file *file, const char *path, const struct output_arrays *arrays, const struct replacement_key *key,
                             struct output *outputs, struct error *error)
{
    struct replacement made;
    struct error why = {.status = ALLFOLD_OK};
    if (add_dimensions(file, arrays->about, &why) != ALLFOLD_OK || add_results(file, arrays->about, arrays, &why) != ALLFOLD_OK)
        return error_within(error, &why, "%s", file_shown(path));
    add_history(file, arrays->about, key != NULL);
    if (netcdf_layout(file, error) != ALLFOLD_OK || replacement_create(path, file->bytes, key, &made, error) != ALLFOLD_OK)
        return error->status;
    if (write_frame(file, &made, error) == ALLFOLD_OK)
        describe_outputs(file, arrays, &made, outputs);
    else
        replacement_discard(&made);
    return error->status;
}

allfold_status output_create_netcdf(const char *path, const struct output_arrays *arrays, const struct replacement_key *key, struct output *outputs,
                                    struct error *error)
{
    struct netcdf_file *const file = calloc(1, sizeof *file);
    if (file == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory to create it", file_shown(path));
    if (output_check_name(path, ".nc", error) == ALLFOLD_OK)
        create(file, path, arrays, key, outputs, error);
    netcdf_free(file);
    free(file);
    return error->status;
}
