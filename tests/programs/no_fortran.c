/* Stands for tests/test_fortran.f90 if configure found no Fortran compiler, or was told --without-fortran. */
#define TAP_WITHOUT_MPI
#include "tests/tap.h"

int main(void)
{
    tap_skip_all("configure found no Fortran compiler with mpi_f08, or was told --without-fortran");
    return tap_done();
}
