# The Fortran module: a small library beside the C library, compiled by MPI's Fortran compiler. It is static only, and its source is
# installed with it, as modules and their code belong to one compiler.
EXTRA_DIST += fortran/expand.awk fortran/allfold.f90.in
AM_V_FC = $(am__v_FC_@AM_V@)
am__v_FC_ = $(am__v_FC_@AM_DEFAULT_V@)
am__v_FC_0 = @echo "  FC      " $@;
am__v_FC_1 =
FORTRAN_COMPILE = $(FC) -fPIC -Ifortran $(FCFLAGS)
# Programs in Fortran of this tree are linked with the library's one object, as the examples in C.
FORTRAN_LINK = $(FC) $(FCFLAGS) $(LDFLAGS) -o $@
fortran_library = fortran/allfold.o src/liballfold.o $(CUDA_LIBS) $(FORTRAN_LIBS)

fortran/allfold.f90: fortran/allfold.f90.in fortran/expand.awk src/allfold.h
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(AWK) -f $(srcdir)/fortran/expand.awk $(srcdir)/src/allfold.h $(srcdir)/fortran/allfold.f90.in >$@
# Its by-product is fortran/allfold.mod.
fortran/allfold.o: fortran/allfold.f90
	$(AM_V_FC)$(FORTRAN_COMPILE) -c fortran/allfold.f90 -o $@ && mv allfold.mod fortran/
# test_support.mod: of tests/test_fortran.f90.
CLEANFILES += fortran/allfold.f90 fortran/allfold.o fortran/allfold.mod test_support.mod

fortran_programs = examples/03_fortran tests/test_fortran
%.o: %.f90 fortran/allfold.o
	$(AM_V_FC)$(MKDIR_P) $(@D) && $(FORTRAN_COMPILE) -c $< -o $@
EXTRA_DIST += $(fortran_programs:=.f90)

if HAVE_FORTRAN
lib_LIBRARIES += liballfold_fortran.a
liballfold_fortran_a_SOURCES =
liballfold_fortran_a_LIBADD = fortran/allfold.o
nodist_mod_DATA = fortran/allfold.mod
fortransourcedir = $(pkgdatadir)/fortran
nodist_fortransource_DATA = fortran/allfold.f90
pkgconfig_DATA += allfold-fortran.pc
fortran/allfold.mod: fortran/allfold.o ;
endif
