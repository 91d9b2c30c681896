/* Global arrays: what they are called, where their elements come from and where results go. Nothing here knows of
   ranks or devices: one process describes an array and hands the description (plain bytes) to the others, which open
   it and read or write their own ranges. */
#pragma once

#include "array/chunking.h"
#include "array/encoding.h"
#include "array/replacement.h"
#include "base/base.h"
#include "base/generator.h"

#define ARRAY_NAMES_BYTES 1024

/* How elements that are not encoded lie in a file: in runs, whose elements lie one behind the other. */
struct array_layout {
    uint64_t offset;  /* bytes before the first element */
    uint64_t run;     /* elements of a run; 0: all lie one behind the other */
    uint64_t stride;  /* bytes from the first element of a run to that of the next; 0 if run is 0 */
    uint32_t swapped; /* 1: big-endian */
};

/* Everything about a global array but its elements. Plain bytes, except that `details` points to more of them: may be broadcast
   and compared. */
struct array_info {
    uint32_t format;                       /* row of the table in formats/formats.c */
    allfold_type type;                     /* of the elements that readers give */
    uint64_t count;                        /* product of shape */
    uint32_t dimensions;                   /* 0 for a scalar: count is then 1 */
    uint32_t fortran_order;                /* 1 when the first index varies fastest */
    uint64_t shape[ARRAY_DIMENSIONS_MAX];
    char names[ARRAY_NAMES_BYTES];         /* of the dimensions, each with the 0 at its end, one behind the other; all 0: there are none */
    /* Of a slice: the shape of the array of which it is a box, and the index there of its first element */
    uint32_t sliced;                       /* 1: it is one */
    uint64_t whole[ARRAY_DIMENSIONS_MAX], first[ARRAY_DIMENSIONS_MAX];
    uint32_t plain;                        /* 1: elements lie as `layout` says, in one file, or in those that `details` lists */
    uint64_t skipped;                      /* elements that lie before the first of the array and are left out: --offset */
    struct array_layout layout;                  /* of formats that do not encode elements, if they lie in this one file; of HDF5
                                              chunks the byte order alone */
    uint64_t granule;                      /* requests, and the parts of ranks, begin at multiples of this number of elements: those that
                                              can be read only together, such as a chunk of a file; usually 1. A window has room
                                              for at least one granule, so a format refuses chunks that are too long for that */
    uint64_t chunk[ARRAY_DIMENSIONS_MAX];  /* the shape of such a chunk; all 0: the array is not in chunks */
    uint64_t positions;                    /* of the source's order, of which those at the end of a granule may be empty; 0: count */
    uint64_t file_bytes;                   /* size of the whole file: other ranks must see the same */
    uint64_t file_time;                    /* when it was last modified, in ns; 0 where there is no file */
    struct encoding encoding;              /* missing values and packing. Readers unpack elements if type is f64 */
    uint32_t missing;                      /* enum missing: what readers do with missing elements */
    struct generator generator;            /* of generated arrays only */
    char path[ARRAY_PATH_BYTES];           /* file name, or the text of the generator */
    char member[ARRAY_PATH_BYTES];         /* the array's name, as it is listed, in a file that may hold several; "" in others */
    uint64_t details_bytes;                /* of what follows; 0: nothing */
    void *details;                         /* the format's own table, such as the files or chunks of the array: plain bytes, from malloc */
};

/* What readers do with missing elements. */
enum missing {
    MISSING_OMIT,  /* leave them out */
    MISSING_KEEP,  /* give them as they are */
    MISSING_ERROR, /* leave them out, and source_check fails */
    MISSING_REFUSE /* the same, where leaving out is no choice: its message says so */
};

/* What the user says about an input beside its name; raw files need it. */
struct array_hints {
    enum missing missing;
    bool has_offset, has_count;
    bool listing;      /* the array is to be listed: there is no type to ask for */
    allfold_type type; /* --dtype; ALLFOLD_TYPE_NONE: not given */
    uint64_t offset;   /* --offset: bytes of a raw file, elements of any other */
    uint64_t count;    /* --count, elements */
    const char *shape; /* --shape, "3,4", of an array that is a row, such as a raw file; NULL: not given */
    const char *slice; /* --slice, "time=0:120"; NULL: not given */
};

/* Describes the array called name. "FILE:NAME" is array NAME of FILE, where FILE is the longest part before a ':' that is a
   regular file; a file of that whole name comes first. In place of FILE there may be a pattern as of glob(3), 'part-*.npy': the
   arrays of its files, in the order of their names, joined along the axis that varies slowest. Without NAME it is the only array
   of the file; if there are several, or none of that name, the error lists them. "gen:DISTRIBUTION?n=1e9&seed=1&dtype=f32&..." is
   generated. docs/formats.md has the formats. Of an array that lies in files as it is, hints->offset and count choose elements as
   they lie there, and make it a row; hints->slice is of what that leaves (slice.h). hints->type must agree with the file. A file
   of no known format is raw and needs hints->type (count defaults to all the rest of the file, which must be whole elements).
   hints may be NULL. Opens, checks and closes the file: headers are capped, products checked, elements within the file. *info is
   written only on success; array_release frees what it then holds. */
allfold_status array_describe(const char *name, const struct array_hints *hints, struct array_info *info,
                              struct error *error);
/* The arrays of several names, in the order given, joined as those of a pattern are. One name: as array_describe. */
allfold_status array_describe_all(const char *const *names, int count, const struct array_hints *hints, struct array_info *info,
                                  struct error *error);
void array_release(struct array_info *info);

/* Whether one of the names means several arrays, each for itself: NAME in "FILE:NAME" is then a pattern as of fnmatch(3), such as '*' or
   '*.weight', and no array of FILE has that very name. False if that cannot be found out: array_describe_all then says why. */
bool array_names_several(const char *const *names, int count);

/* The shape of the array of which the array is a slice, or of itself. */
static inline const uint64_t *array_whole(const struct array_info *info) { return info->sliced ? info->whole : info->shape; }

/* Whether it is in chunks: its source has a chunking. (A scalar may have one, too.) */
static inline bool array_is_chunked(const struct array_info *info) { return info->chunk[0] > 0; }

/* The type of the elements in the file. */
static inline allfold_type array_stored_type(const struct array_info *info)
{
    return info->encoding.stored != ALLFOLD_TYPE_NONE ? info->encoding.stored : info->type;
}

/* An array of a file, as the file's directory has it. Texts and tables belong to the format and end with the call. */
struct array_entry {
    const char *name;                   /* NULL: the format has none */
    struct array_info info;             /* describes the array; of one that is refused, as much as is known of type, shape and layout */
    bool shapeless;                     /* not even its shape is known */
    struct error refused;               /* why it cannot be read, without the names of file and array; ALLFOLD_OK: it can be read */
    const char *type_text;              /* the type in the format's own words, such as "F8_E4M3"; NULL: that of `info` */
    const char *const *dimension_names; /* NULL: the format has none */
    const uint64_t *chunk;              /* shape of a chunk; NULL: not in chunks */
    const char *filters;                /* in the order of writing: "shuffle, deflate"; NULL: none */
};
typedef void array_visit(void *user, const struct array_entry *entry);
/* The same for one who may keep entry->info.details, and then sets it NULL. */
typedef void array_take(void *user, struct array_entry *entry);

/* Calls visit for each array of the file, in the file's order; of "FILE:NAME" for that one. After an error visit may have been
   called for some. slice: as in struct array_hints, of "FILE:NAME" or a file of one array; or NULL. *format: as array_format_name. */
allfold_status array_entries(const char *name, const char *slice, array_visit *visit, void *user, const char **format, struct error *error);

/* Whether it cannot be read because its elements are no numbers that allfold has. */
bool array_entry_is_strange(const struct array_entry *entry);

/* Describes each of the arrays that the names mean, in the order of names and files, and calls take for it: for those that can be read, and
   for strange ones. What cannot be read otherwise is an error. *files: how many there are. */
allfold_status array_describe_each(const char *const *names, int count, const struct array_hints *hints, array_take *take, void *user,
                                   uint64_t *files, struct error *error);

/* An attribute of an array: numbers in this machine's byte order, or a text of `count` bytes (ALLFOLD_TYPE_NONE). */
struct array_attribute {
    const char *name;
    allfold_type type;
    uint64_t count;
    const void *values; /* aligned; good until visit returns */
};
typedef void attribute_visit(void *user, const struct array_attribute *attribute);
/* Calls visit for the attributes that an array of the file has, or (NULL) the file itself: those of numbers and texts, of up to 8 KiB. In formats
   without attributes, and of an array that there is not, there are none. */
allfold_status array_attributes(const char *path, const char *array, attribute_visit *visit, void *user, struct error *error);

/* The one rule for shapes, which is NumPy's: false if the dimensions other than 0 make more bytes than a file can have. Else *count is
   the product of all. */
bool array_count(const uint64_t *shape, uint32_t dimensions, size_t element_bytes, uint64_t *count);
#define ARRAY_COUNT_RULE "less than 2^63 bytes (dimensions of 0 left out)"

/* "3x4", or "scalar" without dimensions; "" for NULL. Cuts it at `bytes`. */
void array_shape_text(const uint64_t *shape, uint32_t dimensions, char *text, size_t bytes);

/* The name of a dimension; "": it has none. */
const char *array_dimension_name(const struct array_info *info, uint32_t dimension);
/* Their names with commas between them; "" if there are none. Cuts the text at `bytes`. */
void array_names_text(const struct array_info *info, char *text, size_t bytes);
/* The number of the dimension that a word of this length means: the one called so, or the number that it is, which may be that of no dimension;
   negative ones count from the last. False: it is neither. */
bool array_find_dimension(const struct array_info *info, const char *word, size_t length, long *number);
/* Of a slice which part of the whole array it is, "[0:120, :, 54:64]"; "" of others. Cuts it at `bytes`. */
void array_slice_text(const struct array_info *info, char *text, size_t bytes);
/* The coordinates of the element with this index, in the order in which elements lie. In words "(time, lat) = (3, 7)", without names
   "(3, 7)"; of less than two dimensions "". */
void array_place(const struct array_info *info, uint64_t index, uint64_t place[ARRAY_DIMENSIONS_MAX]);
#define ARRAY_PLACE_BYTES 512
void array_place_text(const struct array_info *info, uint64_t index, char text[ARRAY_PLACE_BYTES]);

/* An entry's type in words, and its shape, or "". */
const char *array_entry_type(const struct array_entry *entry);
void array_entry_shape(const struct array_entry *entry, char *text, size_t bytes);

/* PATH, or PATH:MEMBER. */
#define ARRAY_NAME_BYTES (2 * ARRAY_PATH_BYTES)
const char *array_name(const struct array_info *info, char name[ARRAY_NAME_BYTES]);

/* Whether name is a file that holds elements of the array, or the one by which it was called, such as an index. called: the names
   that array_describe_all was told. */
bool array_has_file(const struct array_info *info, const char *const *called, int count, const char *name);

/* Whether the array is all that its one file holds. */
bool array_is_file(const struct array_info *info);

/* Refuses files that have been written to or replaced since they were described. For the process that described the array, after it has
   opened it: other hosts may have copies of another time. */
allfold_status array_check_times(const struct array_info *info, struct error *error);

/* The name of its format: "npy", "raw", "generated". */
const char *array_format_name(const struct array_info *info);

/* Reading. A source is an array that is open in this process. Several threads read it at the same time, each with a reader of its
   own. A reader owns what it needs beside the caller's buffer: memory for reading ahead, a decompressor. */

enum { READER_SLACK = 2 * 4096 }; /* room for the file's blocks in which the elements begin and end */

/* The room that a reader needs for count elements: beside their bytes and READER_SLACK, a bitmap, and what makes it and stored elements
   aligned. */
static inline uint64_t reader_room(uint64_t count, size_t element_bytes)
{
    return count * element_bytes + count / 8 + 2 * 4096 + READER_SLACK;
}

/* Elements that a reader is asked for. */
struct read_request {
    struct range range; /* in the source's order, count > 0. It begins at a multiple of the source's granule and ends at one, or at
                           the end of the array */
    uint64_t ahead;     /* this reader's next requests go on behind the range for this number of elements: a reader may read them already */
    void *buffer;       /* aligned to 4096, with reader_room of the elements; free for the reader until its next read */
    bool in_part;       /* of one granule: others of its elements will be needed soon, by another reader perhaps */
};

/* What a read gives. The elements lie in the request's buffer (not always at its beginning), in memory of the reader, which keeps
   them until its next read, or in memory of the source. */
struct piece {
    const void *elements; /* aligned to their size */
    uint64_t count;       /* less than asked for if missing values were left out, or positions are empty */
    const uint64_t *kept; /* in the buffer: bit i says whether the element at position range.first + i is there; NULL: the first
                             `count` positions are. Exact only for requests of one granule */
};

/* Begins the struct of a source's own readers. */
struct reader {
    struct source *source;
    struct reader *inner; /* of the source's inner one; NULL: it has none */
};

struct draw;
struct source {
    /* Gives a reader all elements of the request. What it gives depends on the request's range alone. */
    allfold_status (*read)(struct reader *reader, const struct read_request *request, struct piece *piece, struct error *error);
    size_t reader_bytes; /* of its readers' struct, which begins as all 0, but for struct reader; 0: they have no more than that */
    void (*close_reader)(struct reader *reader); /* frees what that holds; NULL: nothing */
    /* Whether the source is still what was opened: called by one thread, after the last read. NULL: it cannot change. */
    allfold_status (*check)(struct source *source, struct error *error);
    void (*close)(struct source *source); /* frees what it holds; NULL: nothing */
    struct source *inner; /* around which it is: each of its readers has one of that. NULL: none */
    bool borrows;         /* which it does not close */
    /* NULL: a position is the row-major index of the element there. If it is not NULL, folds and outputs to which indices matter ask for one
       granule at a time, inside of which positions and indices have one order. */
    const struct chunking *chunking;
    bool by_granule;     /* with chunking: all that read ask for one granule at a time */
    bool leaves_out;     /* pieces may have fewer elements than positions that are not empty */
    const char *note;    /* what a user should know of how it is read; NULL: nothing */
    allfold_type type;
    uint64_t granule;    /* as array_info says */
    const struct draw *draw; /* not NULL: a device can make the elements itself (base/draw.h); reading gives the same bits */
    const void *memory;  /* not NULL: this rank's range also lies here, to be used in place; reading works all the same */
    allfold_type memory_type; /* ALLFOLD_TYPE_NONE, or the type as which it lies there, if readers convert it */
};

/* The coordinate variable of a dimension of the input, the part of a slice: all its elements, unpacked, from malloc. It has the dimension's name,
   in the group of the array or in the file's own (array_coordinate_name). Arrays of joined files have a joined coordinate of the dimension along which they are joined, else that of the first file. False: there is none. */
struct array_coordinate {
    bool differs; /* from that of another file that is joined */
    allfold_type type;
    uint64_t count;
    void *elements;
};
bool array_coordinate_read(const struct array_info *input, uint32_t dimension, bool in_group, struct array_coordinate *found);
void array_coordinate_name(const char *member, const char *dimension, bool in_group, char *name, size_t bytes);

/* For a sum or a mean: if the elements are packed integers, readers are to give them as they are stored, for fold_call's packing,
   which is returned. NULL: readers give values. */
const struct packing *array_keep_packed(struct array_info *info);

/* Opens a described array for reading; fails if this process sees a file of another size. info->details must outlive
   it. */
allfold_status source_open(const struct array_info *info, struct source **source, struct error *error);
void source_close(struct source *source); /* NULL: nothing */
/* Whether it, and what it is around, is still what was opened. */
allfold_status source_check(struct source *source, struct error *error);

/* For sources around others: a struct of `bytes` bytes, which begins with a struct source around *inner of the same type, chunking and note.
   *inner becomes that, which owns it. NULL: *error is set, and *inner is closed. name: of the array. */
void *source_around(struct source **inner, size_t bytes, const char *name, struct error *error);

/* Called by one thread at a time; the readers then work at the same time. All are closed before the source. */
allfold_status source_open_reader(struct source *source, struct reader **reader, struct error *error);
void reader_close(struct reader *reader); /* NULL: nothing */
/* Reads the first `positions` positions. The elements that are there, *count of them, in memory from malloc; NULL: *error is set. */
void *source_read_all(struct source *source, uint64_t positions, uint64_t *count, struct error *error);
static inline allfold_status reader_read(struct reader *reader, const struct read_request *request, struct piece *piece, struct error *error)
{
    return reader->source->read(reader, request, piece, error);
}

/* This part's elements of an array that is cut among `parts` ranks: as range_part, but in whole granules. */
struct range array_part(const struct array_info *info, uint64_t part, uint64_t parts);

/* Where a result's elements go. write may be called for disjoint ranges by many processes, and by many threads at a time. */
struct sink {
    allfold_status (*write)(struct sink *sink, uint64_t first, uint64_t count, const void *elements, struct error *error);
    /* Makes what this process has written durable. NULL: nothing is to be done. */
    allfold_status (*sync)(struct sink *sink, struct error *error);
    /* Makes everything written durable and closes; sink is freed whatever the outcome. */
    allfold_status (*close)(struct sink *sink, struct error *error);
    allfold_type type;
    void *memory; /* not NULL: this rank's range of the result may also be written here; write works all the same */
};

/* An output file being made. Plain bytes: one process creates it and broadcasts it, every process opens it, one commits
   or discards the file. */
struct output {
    struct replacement file;
    allfold_type type;
    uint64_t count;
    uint64_t data_offset;
    uint64_t member_at;      /* of an archive's member: where it begins, its .npy header first; 0 in other files */
    uint64_t checksum_at[2]; /* where the archive has the member's checksum */
    allfold_type written;    /* the type that elements have in the file; ALLFOLD_TYPE_NONE: their own */
    uint32_t swapped;        /* 1: they are big-endian there */
};

/* Refuses a name that promises another file than the one that is written: its ending, or that of the file to which it is a link. written:
   the ending of that file's format, ".npy" or ".npz"; "": raw elements. */
allfold_status output_check_name(const char *path, const char *written, struct error *error);

/* Creates the temporary file (see replacement_create) with its header, at its full size: .npy where path ends in ".npy"
   (shape and order of info; bf16 refused, NumPy has none), raw otherwise (other formats' names are refused). info->type is the output's. key: as replacement_create has
   it. Writes *output only on success. */
allfold_status output_create(const char *path, const struct array_info *info, const struct replacement_key *key, struct output *output,
                             struct error *error);
allfold_status output_open(const struct output *output, struct sink **sink, struct error *error);

/* Arrays of one shape, for an archive (.npz). */
enum { OUTPUT_ARRAYS_MAX = 14 };
struct output_arrays {
    const struct array_info *info; /* of all, but for the type */
    int count;
    const char *names[OUTPUT_ARRAYS_MAX];
    allfold_type types[OUTPUT_ARRAYS_MAX];
    struct output_about *about; /* for NetCDF; else NULL */
    bool is_row;                /* array i is a row of rows[i] elements, whatever the shape of info is: of an archive */
    uint64_t rows[OUTPUT_ARRAYS_MAX];
};
/* What NetCDF says of results along axes beside their elements. */
struct output_about {
    const struct array_info *input;    /* the array that is folded */
    uint64_t folded;                   /* bit d: dimension d of it is */
    bool keeps;                        /* these have length 1 in the results */
    const char *const *words;          /* the command, for the history: argv */
    int word_count;
    char note[240];                    /* is set to what is left out; "": nothing */
};
/* The same for an archive of stored .npy files, one for each array: outputs[i] is array i. */
allfold_status output_create_archive(const char *path, const struct output_arrays *arrays, const struct replacement_key *key,
                                     struct output *outputs, struct error *error);
/* The same for classic NetCDF, with a variable for each array. */
allfold_status output_create_netcdf(const char *path, const struct output_arrays *arrays, const struct replacement_key *key, struct output *outputs,
                                    struct error *error);
/* After all elements of a member are written and durable: writes its checksum, and makes that durable. For one process; another may do so
   for another member. */
allfold_status output_seal(const struct output *output, struct error *error);

/* Generators (generate.c; their elements: draw.h), which depend only on the distribution, the seed and the global index. */
/* Parses "normal?n=1e9&seed=1" (after "gen:"); fills type, count, shape and generator of *info. The message does not repeat the text. */
allfold_status generator_parse(const char *text, const struct array_hints *hints, struct array_info *info,
                               struct error *error);
/* The distributions as lines of text for --help: name, parameters and defaults, meaning. */
const char *generator_help(void);
