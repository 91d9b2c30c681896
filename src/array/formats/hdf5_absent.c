/* Stands in for the formats hdf5 and netcdf4 in a build without the HDF5 library: the file is known, and refused. */
#include "array/formats/formats.h"

static allfold_status refuse(const struct input_file *file, struct error *error)
{
    return error_set(error, ALLFOLD_UNSUPPORTED, "%s: an HDF5 or NetCDF-4 file, and this build has no HDF5: install the library "
                     "(Debian, Ubuntu: libhdf5-dev) and build allfold with configure --with-hdf5", file_shown(file->name));
}

static allfold_status list(const struct input_file *file, array_visit *visit, void *user, struct error *error)
{
    (void)visit, (void)user;
    return refuse(file, error);
}

static allfold_status describe(const struct input_file *file, const struct array_hints *hints, struct array_info *info,
                               struct error *error)
{
    (void)hints, (void)info;
    return refuse(file, error);
}

static bool recognises_none(const struct input_file *file) { return file == NULL; }

const struct format format_netcdf4 = {.name = "netcdf4", .recognises = recognises_none, .list = list, .describe = describe};
const struct format format_hdf5 = {.name = "hdf5", .recognises = hdf5_recognises, .list = list, .describe = describe};
