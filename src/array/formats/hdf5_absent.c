/* Stands in for the formats hdf5 and netcdf4 in a build without the HDF5 library: the file is known, and refused. */
#include "array/formats/formats.h"

static allfold_status refuse(const struct input_file *file, struct directory *directory, struct error *error)
{
    (void)file, (void)directory;
    return error_set(error, ALLFOLD_UNSUPPORTED, "an HDF5 or NetCDF-4 file, and this build has no HDF5: install the library "
                     "(Debian, Ubuntu: libhdf5-dev) and build allfold with configure --with-hdf5");
}

static bool recognises_none(const struct input_file *file) { return file == NULL; }

const struct format format_netcdf4 = {.name = "netcdf4", .recognises = recognises_none, .read_directory = refuse, .named = true};
const struct format format_hdf5 = {.name = "hdf5", .recognises = hdf5_recognises, .read_directory = refuse, .named = true};
