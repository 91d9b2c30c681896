! The sum, the largest element and the softmax of an array that is spread over the ranks, from Fortran.
! mpifort 03_fortran.f90 $(pkg-config --cflags --libs allfold-fortran) -o 03_fortran && mpirun -np 4 ./03_fortran
program fortran_example
  use, intrinsic :: iso_fortran_env, only: int64, real32, real64
  use mpi_f08
  use allfold
  implicit none
  integer, parameter :: rows = 1000, columns = 1000
  real(real32) :: x(rows, columns), y(rows, columns)
  type(allfold_context) :: context
  type(allfold_result) :: total, largest, one
  character(512) :: message
  integer :: rank, size, i, j

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)

  ! The global array is 1/1, 1/2, 1/3, ...: a million elements a rank, one after another in rank order.
  do j = 1, columns
    do i = 1, rows
      x(i, j) = 1 / real(int(rank, int64) * rows * columns + (j - 1) * rows + i, real32)
    end do
  end do

  if (allfold_open(MPI_COMM_WORLD, context, message=message) /= ALLFOLD_OK) call fail(message)
  if (allfold_reduce(context, ALLFOLD_SUM, x, total) /= ALLFOLD_OK) call fail(allfold_message(context))
  if (allfold_reduce(context, ALLFOLD_ARGMAX, x, largest) /= ALLFOLD_OK) call fail(allfold_message(context))
  if (allfold_softmax(context, x, y) /= ALLFOLD_OK) call fail(allfold_message(context))
  if (allfold_reduce(context, ALLFOLD_SUM, y, one) /= ALLFOLD_OK) call fail(allfold_message(context))

  ! Every rank has the same results; one prints them.
  if (rank == 0) print "(a,i0,a,i0,a,f0.10,a,f0.1,a,i0,a,f0.6)", "sum of ", total%count, " elements on ", size, " ranks: ", &
    total%value, ", largest ", largest%value, " at ", largest%index, ", sum of the softmax ", one%value

  call allfold_close(context)
  call MPI_Finalize()

contains

  subroutine fail(why)
    character(*), intent(in) :: why
    print "(2a)", "03_fortran: ", trim(why)
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine
end program
