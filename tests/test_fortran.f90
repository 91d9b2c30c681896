! The Fortran module at several rank counts: element types and ranks of arrays, folds, softmax, options, errors. Expected values are
! computed here, in integers or from closed forms. argv[1] is the backend. Prints TAP, on rank 0; all ranks must agree.
module test_support
  use, intrinsic :: iso_c_binding
  use mpi_f08
  use allfold
  implicit none
  integer :: rank, ranks, checks = 0, failures = 0
  type(allfold_context) :: context
  integer :: lines = 0
  integer(c_int) :: status

contains

  subroutine ok(condition, name)
    logical, intent(in) :: condition
    character(*), intent(in) :: name
    logical :: all
    character(400) :: prefix, wanted
    integer :: prefix_length, length
    call MPI_Allreduce(condition, all, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD)
    call get_environment_variable("ALLFOLD_TEST_PREFIX", prefix, prefix_length)
    call get_environment_variable("ALLFOLD_TEST_CASE", wanted, length)
    if (index(prefix(:prefix_length) // name, wanted(:min(length, 400))) == 0) return
    checks = checks + 1
    if (.not. all) failures = failures + 1
    if (rank == 0) print "(a,i0,2a)", trim(merge("ok    ", "not ok", all)) // " ", checks, " - ", name
    if (.not. condition) print "(a,i0,2a)", "# rank ", rank, ": ", allfold_message(context)
  end subroutine

  subroutine count_line(user, line) bind(C)
    type(c_ptr), value :: user, line
    if (c_associated(user) .and. c_associated(line)) lines = lines + 1
  end subroutine

  ! Through `use mpi`, whose communicators are integers.
  integer(c_int) function open_by_integer(second)
    use mpi, only: world => MPI_COMM_WORLD
    type(allfold_context), intent(out) :: second
    open_by_integer = allfold_open(world, second)
  end function
end module

program test_fortran
  use, intrinsic :: ieee_arithmetic
  use test_support
  implicit none
  integer, target :: user = 1
  type(allfold_options) :: options
  type(allfold_result) :: found
  character(512) :: message
  character(8) :: backend

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call get_command_argument(1, backend)
  options%backend = merge(ALLFOLD_BACKEND_CUDA, ALLFOLD_BACKEND_CPU, backend == "cuda")
  options%log = c_funloc(count_line)
  options%log_user = c_loc(user)
  status = allfold_open(MPI_COMM_WORLD, context, options, message)
  if (status == ALLFOLD_UNSUPPORTED) then
    if (rank == 0) print "(2a)", "1..0 # SKIP ", trim(message)
  else
    call ok(status == ALLFOLD_OK .and. message == "" .and. lines > 0, "a context, whose log calls back")
    call check_constants
    call check_types
    call check_shapes
    call check_results
    call check_dot
    call check_two_phases
    call check_axes
    call check_log_probs
    call check_order
    call check_softmax
    call check_calls
    call check_errors
    call check_options
    call allfold_close(context)
    if (rank == 0) print "(a,i0,a)", "1..", checks, merge(" # SKIP no check is named so", repeat(" ", 28), checks == 0)
  end if
  call MPI_Finalize()
  if (failures > 0) stop 1

contains

  subroutine check_constants
    call ok(allfold_fold_name(ALLFOLD_SUM) == "sum" .and. allfold_fold_name(ALLFOLD_STATS) == "stats" &
            .and. allfold_fold_name(ALLFOLD_FOLD_COUNT) == "no fold", "constants of folds")
    call ok(allfold_type_name(ALLFOLD_F16) == "f16" .and. allfold_type_name(ALLFOLD_BOOL) == "bool" &
            .and. allfold_type_name(ALLFOLD_TYPE_COUNT) == "no type", "constants of element types")
    call ok(allfold_status_text(ALLFOLD_STOPPED) /= "unknown status" &
            .and. allfold_status_text(ALLFOLD_STOPPED + 1) == "unknown status", "constants of status")
    call ok(len(allfold_version()) >= 5, "the version")
  end subroutine

  ! Sums of -2, 0, 3 on each rank, by element type.
  subroutine check_types
    integer(c_int8_t) :: i8(3) = [-2_c_int8_t, 0_c_int8_t, 3_c_int8_t]
    logical(c_bool) :: mask(4) = [.true._c_bool, .false._c_bool, .true._c_bool, .true._c_bool]
    integer(c_int64_t), target :: large(1)
    status = allfold_reduce(context, ALLFOLD_SUM, i8, found)
    call ok(status == ALLFOLD_OK .and. found%value == ranks .and. found%kind == ALLFOLD_VALUE_I64 &
            .and. found%integer_value == ranks .and. found%count == 3 * ranks .and. found%index == 0, "int8")
    status = allfold_reduce(context, ALLFOLD_SUM, int(i8, c_int16_t) * 300_c_int16_t, found)
    call ok(status == ALLFOLD_OK .and. found%value == 300 * ranks, "int16")
    status = allfold_reduce(context, ALLFOLD_SUM, int(i8), found)
    call ok(status == ALLFOLD_OK .and. found%value == ranks, "default integer")
    status = allfold_reduce(context, ALLFOLD_SUM, int(i8, c_int64_t) * 2_c_int64_t**60, found)
    call ok(status == ALLFOLD_OK .and. found%value > 0 .and. found%integer_value == ranks * 2_c_int64_t**60, "int64")
    status = allfold_reduce(context, ALLFOLD_SUM, real(i8), found)
    call ok(status == ALLFOLD_OK .and. found%value == ranks .and. found%kind == ALLFOLD_VALUE_F64, "default real")
    status = allfold_reduce(context, ALLFOLD_SUM, [1d300, 1d0, -1d300], found)
    call ok(status == ALLFOLD_OK .and. found%value == ranks, "double precision, exactly")
    status = allfold_reduce(context, ALLFOLD_SUM, mask, found)
    call ok(status == ALLFOLD_OK .and. found%value == 3 * ranks, "logical(c_bool)")
    large = merge(ibset(0_c_int64_t, 63), 0_c_int64_t, rank == 0)
    status = allfold_reduce(context, ALLFOLD_MAX, allfold_array(c_loc(large), 1, ALLFOLD_UINT64), found)
    call ok(status == ALLFOLD_OK .and. found%value == 2d0**63 .and. found%kind == ALLFOLD_VALUE_U64 &
            .and. found%integer_value == large(1) .or. rank > 0, "uint64, as an allfold_array")
  end subroutine

  ! Arrays of rank 0 to 7, sections, parts of other lengths.
  subroutine check_shapes
    real(c_double) :: x(128), square(16, 8), seven(2, 2, 2, 2, 2, 2, 2)
    real(c_double), allocatable :: part(:)
    integer :: i
    x = [(sqrt(real(i, c_double)), i=1, 128)]
    square = reshape(x, shape(square))
    seven = reshape(x, shape(seven))
    status = allfold_reduce(context, ALLFOLD_MAX, square, found)
    call ok(status == ALLFOLD_OK .and. found%value == x(128) .and. found%count == 128 * ranks, "rank 2")
    status = allfold_reduce(context, ALLFOLD_MIN, seven, found)
    call ok(status == ALLFOLD_OK .and. found%value == 1 .and. found%count == 128 * ranks, "rank 7")
    status = allfold_reduce(context, ALLFOLD_MAX, rank + 1d0, found)
    call ok(status == ALLFOLD_OK .and. found%value == ranks .and. found%count == ranks, "a scalar")
    status = allfold_reduce(context, ALLFOLD_ARGMAX, square(1:16:5, 2:3), found)
    call ok(status == ALLFOLD_OK .and. found%value == square(16, 3) .and. found%index == 8 .and. found%count == 8 * ranks, &
            "a section that is not contiguous; an index from 1")
    allocate (part(merge(0, rank * 10, rank == 0)))
    part = [(rank * 100d0 + i, i=1, size(part))]
    status = allfold_reduce(context, ALLFOLD_ARGMIN, part, found)
    call ok(status == merge(ALLFOLD_NO_VALUE, ALLFOLD_OK, ranks == 1) .and. (ranks == 1 .or. found%value == 101 &
            .and. found%index == 1 .and. found%count == 5 * ranks * (ranks - 1)), "a rank without elements")
    part = [(real(i, c_double), i=1, merge(3, 2, rank == ranks - 1))]
    status = allfold_reduce(context, ALLFOLD_ARGMAX, part, found)
    call ok(status == ALLFOLD_OK .and. found%value == 3 .and. found%index == 2 * ranks + 1, "an index on the last rank")
  end subroutine

  subroutine check_results
    type(allfold_result), allocatable :: all(:)
    type(allfold_call) :: single
    real(c_float) :: x(3)
    x = [1.0, 2.0, ieee_value(1.0, ieee_quiet_nan)]
    single%nan = ALLFOLD_NAN_OMIT
    single%result_type = ALLFOLD_F32
    status = allfold_reduce_all(context, ALLFOLD_STATS, x, all, single)
    call ok(status == ALLFOLD_OK, "several results")
    call ok(size(all) == 10 .and. all(1)%name == "count" .and. all(1)%integer_value == 3 * ranks &
            .and. all(2)%value == ranks .and. all(6)%name == "min" .and. all(6)%value == 1 .and. all(6)%index == 1 &
            .and. all(4)%index == 0, "their names, values, indices")
    status = allfold_reduce_all(context, ALLFOLD_MAX, [rank], all)
    call ok(status == ALLFOLD_OK .and. size(all) == 1 .and. all(1)%value == ranks - 1, "all of one result")
  end subroutine

  subroutine check_dot
    real(c_double) :: x(2, 2) = reshape([1d200, 3d0, -1d200, 2d0], [2, 2]), y(2, 2) = reshape([1d200, 4d0, 1d200, 5d0], [2, 2])
    status = allfold_dot(context, x, y, found)
    call ok(status == ALLFOLD_OK .and. found%value == 22 * ranks .and. found%count == 4 * ranks, "a dot product, exactly")
    status = allfold_dot(context, [rank, 7], [rank, 2], found)
    call ok(status == ALLFOLD_OK .and. found%integer_value == 14 * ranks + (ranks - 1) * ranks * (2 * ranks - 1) / 6, "of integers")
    status = allfold_dot(context, [1d0, 2d0], [1d0], found)
    call ok(status == ALLFOLD_BAD_ARGUMENT, "of arrays of different sizes")
  end subroutine

  subroutine check_axes
    integer(c_int16_t), target :: x(3, 4, 2)
    real(c_double), target :: y(3, 4, 2)
    integer(c_int64_t), target :: sums(3, 2, 16), largest(3, 4), at(3, 4), row(64), places(4)
    type(allfold_result), allocatable :: statistics(:)
    type(allfold_call) :: call
    type(allfold_output) :: out(1)
    integer :: i
    x = reshape([(int(mod(i * 7 + rank, 13), c_int16_t), i=1, 24)], shape(x))
    out(1)%values = c_loc(sums)
    status = allfold_reduce_axis(context, ALLFOLD_SUM, allfold_view(x, 2), out)
    call ok(status == ALLFOLD_OK .and. all_equal(sums(:, :, rank + 1), sum(int(x, c_int64_t), 2)), &
            "sums along the second dimension")
    status = allfold_reduce_axis(context, ALLFOLD_ARGMAX, allfold_view(x, 3, ALLFOLD_CUT_AXIS), &
                                 [allfold_output(c_loc(largest), c_loc(at))])
    call ok(status == ALLFOLD_OK .and. all(largest >= maxval(x, 3)) .and. all(at >= 0) .and. all(at < 2 * ranks), &
            "largest along a dimension that the ranks share")
    status = allfold_reduce_axis(context, ALLFOLD_ARGMIN, allfold_view(x, [3, 1]), &
                                 [allfold_output(c_loc(row), c_loc(places))])
    call ok(status == ALLFOLD_OK .and. all(row(:4) <= minval(minval(x, 3), 1)) .and. all(places >= 0) &
            .and. all(places < 6 * ranks), "smallest along two dimensions that are not adjacent, of which the ranks share one")
    out(1)%values = c_loc(row)
    status = allfold_reduce_axis(context, ALLFOLD_SUM, allfold_view(x, [1, 3], 2), out)
    call ok(status == ALLFOLD_OK .and. all_equal(reshape(row(4 * rank + 1:4 * rank + 4), [4, 1]), &
            reshape(sum(sum(int(x, c_int64_t), 3), 1), [4, 1])), "sums along them, if the ranks share the other")
    status = allfold_softmax_axis(context, allfold_view(x, [1, 3], 2), &
                                  allfold_array(c_loc(y), size(y, kind=c_int64_t), ALLFOLD_F64))
    call ok(status == ALLFOLD_OK .and. all(abs(sum(sum(y, 3), 1) - 1) < 1d-12), "softmax along them")
    status = allfold_reduce_axis(context, ALLFOLD_SUM, allfold_view(x, [1, 1]), out)
    call ok(status == ALLFOLD_BAD_ARGUMENT, "a dimension twice")
    out(1)%values = c_loc(sums)
    call%own_results = 1
    sums = -1
    status = allfold_reduce_axis(context, ALLFOLD_SUM, allfold_view(x, 2), out, call)
    call ok(status == ALLFOLD_OK .and. all_equal(sums(:, :, 1), sum(int(x, c_int64_t), 2)) .and. all(sums(:, :, 2:) == -1), &
            "results of its own")
    status = allfold_softmax_axis(context, allfold_view(x, 1), &
                                  allfold_array(c_loc(y), size(y, kind=c_int64_t), ALLFOLD_F64))
    call ok(status == ALLFOLD_OK .and. all(abs(sum(y, 1) - 1) < 1d-12), "softmax along the first dimension")
    status = allfold_reduce_axis(context, ALLFOLD_SUM, allfold_view(x, 4), out)
    call ok(status == ALLFOLD_BAD_ARGUMENT, "no such dimension")
    call ok(allfold_result_name(ALLFOLD_STATS, 6) == "min" .and. allfold_result_name(ALLFOLD_STATS, 99) == "", "names of results")
    call = allfold_call(ddof=1)
    status = allfold_reduce_all(context, ALLFOLD_STATS, [1d0, 3d0], statistics, call)
    call ok(status == ALLFOLD_OK .and. abs(statistics(5)%value - 2d0 * ranks / (2 * ranks - 1)) < 1d-14, "ddof")
  end subroutine

  subroutine check_log_probs
    real(c_float), target :: x(3, 2) = reshape([0., 0., 0., 1., 2., 3.], [3, 2])
    real(c_double), target :: log_prob(2), logsumexp(2)
    integer(c_int64_t), target :: targets(2), largest(2)
    type(allfold_log_probs_output) :: output
    targets = [int(3 * ranks - 1, c_int64_t), -1_c_int64_t]
    output%log_prob = c_loc(log_prob)
    output%logsumexp = c_loc(logsumexp)
    output%argmax = c_loc(largest)
    status = allfold_log_probs(context, allfold_view(x, 1, ALLFOLD_CUT_AXIS), c_loc(targets), output, ignore_index=-1_c_int64_t)
    call ok(status == ALLFOLD_OK .and. abs(log_prob(1) + log(3d0 * ranks)) < 1d-14 .and. abs(log_prob(2)) <= 0 &
            .and. largest(1) == 0 .and. largest(2) == 2, "log-probabilities along a dimension that the ranks share")
    status = allfold_log_probs_gradient(context, allfold_view(x, 1, ALLFOLD_CUT_AXIS), c_loc(targets), c_loc(logsumexp), &
                                        c_null_ptr, allfold_array(c_loc(x), size(x, kind=c_int64_t), ALLFOLD_F32), &
                                        ignore_index=-1_c_int64_t)
    call ok(status == ALLFOLD_OK .and. abs(sum(x(:, 1)) - (1d0 / ranks - merge(1, 0, rank == ranks - 1))) < 1d-6 &
            .and. all(abs(x(:, 2)) <= 0), "and their gradient")
  end subroutine

  ! Of 3 r, 3 r + 1, 3 r + 2 on rank r.
  subroutine check_order
    integer(c_int32_t) :: x(3), top(2)
    integer(c_int64_t) :: indices(2), counts(3), few(1)
    real(c_double) :: edges(4)
    type(allfold_outside) :: outside
    type(allfold_result), allocatable :: quantiles(:)
    x = 3 * rank + [0, 1, 2]
    status = allfold_quantile(context, x, [0d0, 0.5d0, 1d0], quantiles)
    call ok(status == ALLFOLD_OK .and. size(quantiles) == 3 .and. quantiles(1)%value == 0 &
            .and. quantiles(2)%value == (3 * ranks - 1) / 2d0 &
            .and. quantiles(3)%value == 3 * ranks - 1 .and. quantiles(1)%count == 3 * ranks, "quantiles")
    status = allfold_quantile(context, real(x), [0.5d0], quantiles, allfold_quantiles(method=ALLFOLD_QUANTILE_LOWER))
    call ok(status == ALLFOLD_OK .and. quantiles(1)%value == (3 * ranks - 1) / 2, "a lower quantile")
    status = allfold_topk(context, x, top, indices)
    call ok(status == ALLFOLD_OK .and. all(top == 3 * ranks - [1, 2]) .and. all(indices == 3 * ranks - [0, 1]), "the largest")
    status = allfold_topk(context, x, top, indices, allfold_top(smallest=1))
    call ok(status == ALLFOLD_OK .and. all(top == [0, 1]) .and. all(indices == [1, 2]), "the smallest")
    status = allfold_topk(context, x, top, few)
    call ok(status == ALLFOLD_BAD_ARGUMENT, "room for one index of two")
    status = allfold_histogram(context, real(x, c_double), counts, allfold_bins(has_range=1, low=0.5d0, high=3.5d0), edges, outside)
    call ok(status == ALLFOLD_OK .and. all(counts == merge(1, 0, [.true., .true., ranks > 1])) &
            .and. all(edges == [0.5d0, 1.5d0, 2.5d0, 3.5d0]) .and. outside%below == 1 .and. outside%above == max(0, 3 * ranks - 4) &
            .and. outside%nan == 0, "a histogram")
    status = allfold_histogram(context, x, counts)
    call ok(status == ALLFOLD_OK .and. sum(counts) == 3 * ranks .and. all(counts == ranks), "bins of the whole range")
    status = allfold_histogram(context, x, counts, edges=edges(:3))
    call ok(status == ALLFOLD_BAD_ARGUMENT, "room for too few edges")
  end subroutine

  subroutine check_two_phases
    integer(c_int64_t) :: first, second
    type(allfold_result), allocatable :: results(:)
    integer :: statuses(4)
    statuses(1) = allfold_reduce_begin(context, ALLFOLD_STATS, [1d0, 3d0], first)
    statuses(2) = allfold_dot_begin(context, [2, 3], [5, 7], second)
    statuses(3) = allfold_reduce_end(context, second, results)
    call ok(all(statuses(:3) == ALLFOLD_OK) .and. size(results) == 1 .and. results(1)%integer_value == 31 * ranks, &
            "a dot product in two phases")
    statuses(4) = allfold_reduce_end(context, first, results)
    call ok(statuses(4) == ALLFOLD_OK .and. size(results) == 10 .and. results(4)%value == 2, "statistics likewise")
    statuses(1) = allfold_reduce_end(context, first, results)
    call ok(statuses(1) == ALLFOLD_BAD_ARGUMENT, "a request that is closed")
    if (rank == 0) statuses(1) = allfold_fail_begin(context, ALLFOLD_NO_MEMORY, "no room", first)
    if (rank > 0) statuses(1) = allfold_dot_begin(context, [2, 3], [5, 7], first)
    statuses(2) = allfold_reduce_end(context, first, results)
    call ok(statuses(1) == ALLFOLD_OK .and. statuses(2) == ALLFOLD_NO_MEMORY, "a rank that cannot begin")
  end subroutine

  logical function all_equal(a, b)
    integer(c_int64_t), intent(in) :: a(:, :), b(:, :)
    all_equal = all(a == b)
  end function

  subroutine check_softmax
    integer, parameter :: n = 24
    integer :: i
    integer(c_int16_t) :: x(4, 6)
    real(c_float) :: y(4, 6), in_place(4, 6), strided(8, 6)
    real(c_double) :: expected(4, 6), mine, total, z(4, 6)
    type(allfold_call) :: logarithm
    x = reshape([(int(mod(i * 7 + rank, 11), c_int16_t), i=1, n)], shape(x))
    mine = sum(exp(real(x, c_double)))
    call MPI_Allreduce(mine, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
    expected = exp(real(x, c_double)) / total
    status = allfold_softmax(context, x, z)
    call ok(status == ALLFOLD_OK .and. all(abs(z - expected) <= 1d-14 * expected), "softmax, int16 to real64")
    in_place = x
    status = allfold_softmax(context, in_place, y)
    call ok(status == ALLFOLD_OK .and. all(abs(y - expected) <= 1d-6 * expected), "softmax, real32")
    status = allfold_softmax_in_place(context, in_place)
    call ok(status == ALLFOLD_OK .and. all(in_place == y), "softmax in place")
    strided = -1
    status = allfold_softmax(context, x, strided(1:7:2, :))
    call ok(status == ALLFOLD_OK .and. all(strided(1:7:2, :) == y) .and. all(strided(2:8:2, :) == -1), &
            "softmax to a section that is not contiguous")
    logarithm%logarithm = 1
    status = allfold_softmax(context, x, z, logarithm)
    call ok(status == ALLFOLD_OK .and. all(abs(z - log(expected)) < 1d-12), "log-softmax")
  end subroutine

  subroutine check_calls
    type(allfold_call) :: call
    call%nan = ALLFOLD_NAN_OMIT
    status = allfold_reduce(context, ALLFOLD_MAX, [1d0, ieee_value(1d0, ieee_quiet_nan)], found, call)
    call ok(status == ALLFOLD_OK .and. found%value == 1, "NaN left out")
    call%nan = ALLFOLD_NAN_PROPAGATE
    call%result_type = ALLFOLD_F32
    status = allfold_reduce(context, ALLFOLD_MAX, [1 + 1d-10], found, call)
    call ok(status == ALLFOLD_OK .and. found%value == 1, "a result type")
  end subroutine

  subroutine check_errors
    type(allfold_call) :: call
    real(c_double) :: x(2), y(3)
    x = 1
    y = 2
    found%value = 42
    call%nan = ALLFOLD_NAN_ERROR
    status = allfold_reduce(context, ALLFOLD_MAX, [merge(ieee_value(1d0, ieee_quiet_nan), 1d0, rank == 0)], found, call)
    call ok(status == ALLFOLD_NO_VALUE .and. found%value == 42 .and. index(allfold_message(context), "NaN") > 0, "NaN refused")
    status = allfold_reduce(context, ALLFOLD_SUM, [huge(1_c_int64_t), 1_c_int64_t], found)
    call ok(status == ALLFOLD_OVERFLOW, "overflow")
    status = allfold_reduce(context, ALLFOLD_FOLD_COUNT, x, found)
    call ok(status == ALLFOLD_BAD_ARGUMENT, "no such fold")
    status = allfold_softmax(context, x, y)
    call ok(status == ALLFOLD_BAD_ARGUMENT .and. all(y == 2) .and. &
            index(allfold_message(context), "y has 3 elements, x has 2") > 0, "a softmax of another size")
    status = ALLFOLD_OK
    if (rank == 0) status = allfold_fail(context, ALLFOLD_NO_MEMORY, "no room")
    if (rank > 0) status = allfold_reduce(context, ALLFOLD_SUM, x, found)
    call ok(status == ALLFOLD_NO_MEMORY .and. index(allfold_message(context), "no room") > 0, "a rank that cannot call")
    status = allfold_reduce(context, ALLFOLD_STATS, x, found)
    call ok(status == ALLFOLD_BAD_ARGUMENT .and. found%value == 42, "several results where one is asked for")
  end subroutine

  ! Each field lies where the library looks for it.
  subroutine check_options
    type(allfold_context) :: second
    call refused("backend", allfold_options(backend=77))
    call refused("threads", allfold_options(threads=-1))
    call refused("level", allfold_options(level=77))
    call refused("exchange", allfold_options(exchange=77))
    call ok(open_by_integer(second) == ALLFOLD_OK, "a communicator of use mpi")
    status = allfold_reduce(second, ALLFOLD_SUM, [1d0], found)
    call ok(status == ALLFOLD_OK .and. found%value == ranks .and. found%level == ALLFOLD_LEVEL_EXACT, "its sum")
    call allfold_close(second)
    status = allfold_open(MPI_COMM_SELF, second, allfold_options(level=ALLFOLD_LEVEL_FAST, exchange=ALLFOLD_EXCHANGE_MPI))
    if (status == ALLFOLD_OK) status = allfold_reduce(second, ALLFOLD_SUM, [1d0], found)
    call ok(status == ALLFOLD_OK .and. found%value == 1 .and. found%level == ALLFOLD_LEVEL_FAST, "another communicator and level")
    call allfold_close(second)
  end subroutine

  subroutine refused(name, wrong)
    character(*), intent(in) :: name
    type(allfold_options), intent(in) :: wrong
    type(allfold_context) :: none
    status = allfold_open(MPI_COMM_WORLD, none, wrong, message)
    call ok(status == ALLFOLD_BAD_ARGUMENT, "a wrong " // name // ": " // trim(message))
    call allfold_close(none)
  end subroutine
end program
