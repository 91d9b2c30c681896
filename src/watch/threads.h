/* The threads of MPI itself. Open MPI 4's MPI_Finalize unloads code that these may still have to run: an event that MPI_Init announces is
   handled by one of them, which on a loaded machine may come to it as late as then, and crash. */
#pragma once

/* Called when MPI_Init has returned, before OpenMP or the program itself starts a thread: remembers which threads there are. */
void threads_remember(void);

/* Waits until they have nothing to do, but not longer than that. */
void threads_rest(double seconds);
