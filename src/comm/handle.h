/* Turns errors of MPI into errors of ours, for the files of src/comm/ that call MPI. */
#pragma once

#include "comm/comm.h"

#include <mpi.h>

MPI_Comm comm_handle(const struct comm *comm);
/* ALLFOLD_MPI_ERROR, with MPI's own text. */
allfold_status comm_failed(int code, const char *call, struct error *error);
