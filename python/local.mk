# The Python package: ctypes only. make install puts it into $(pythondir); `pip install ./python` installs it by itself.
python_package = \
	python/allfold/__init__.py \
	python/allfold/_arrays.py \
	python/allfold/_axes.py \
	python/allfold/_compare.py \
	python/allfold/_context.py \
	python/allfold/_dlpack.py \
	python/allfold/_errors.py \
	python/allfold/_files.py \
	python/allfold/_functions.py \
	python/allfold/_library.py \
	python/allfold/_log_probs.py \
	python/allfold/_mpi.py \
	python/allfold/_order.py \
	python/allfold/_torch.py \
	python/allfold/_types.py \
	python/allfold/begin.py \
	python/allfold/foreach.py \
	python/allfold/py.typed
EXTRA_DIST += $(python_package) python/README.md python/pyproject.toml python/setup.py

if HAVE_PYTHON_PACKAGE
pypackagedir = $(pythondir)/allfold
pypackage_DATA = $(python_package) python/_installed.py
# From the package to the library, so that both can be moved together.
python/_installed.py: Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(PYTHON) -c 'import os, sys; print("# Where the library is, seen from this folder. Written by make.\nLIBDIR = %r" % os.path.relpath(*sys.argv[1:]))' \
	  "$(libdir)" "$(pypackagedir)" >$@
CLEANFILES += python/_installed.py
endif
