# What is installed beside the program: completion, the report tool, a module file; and recipes for package managers, which
# are not installed. docs/cluster.md has the text.
completiondir = $(datarootdir)/bash-completion/completions
completion_DATA = packaging/allfold
packaging/allfold: packaging/completion.bash
	$(AM_V_GEN)$(MKDIR_P) $(@D) && cp $(srcdir)/packaging/completion.bash $@

# The tool finds its modules beside itself, so it is called through a link.
toolsdir = $(pkgdatadir)/tools
dist_tools_DATA = tools/scaling_study.py tools/scaling_plots.py
dist_tools_SCRIPTS = tools/scaling-report
dist_man_MANS += tools/allfold-scaling-report.1

# For Environment Modules and Lmod: module use $(datadir)/modulefiles
modulefilesdir = $(datarootdir)/modulefiles/allfold
modulefiles_DATA = packaging/$(PACKAGE_VERSION)
packaging/$(PACKAGE_VERSION): packaging/modulefile.in Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && sed -e 's|@version''@|$(PACKAGE_VERSION)|g' -e 's|@bindir''@|$(bindir)|g' \
	  -e 's|@libdir''@|$(libdir)|g' -e 's|@includedir''@|$(includedir)|g' -e 's|@mandir''@|$(mandir)|g' \
	  $(if $(pythondir),-e 's|@pythondir''@|$(pythondir)|g',-e '/@pythondir''@/d') $(srcdir)/packaging/modulefile.in >$@

# For find_package(allfold) of CMake. The files name other folders as seen from theirs, so that the whole may be moved.
cmakedir = $(libdir)/cmake/allfold
cmake_DATA = packaging/cmake/allfold-config.cmake packaging/cmake/allfold-config-version.cmake
packaging/cmake/%.cmake: packaging/cmake/%.cmake.in Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && include=`realpath -ms --relative-to="$(cmakedir)" "$(includedir)"` && \
	  modules=`realpath -ms --relative-to="$(cmakedir)" "$(moddir)"` && \
	  sed -e 's|@version''@|$(PACKAGE_VERSION)|' -e 's|@LIBS_OF_ARCHIVE''@|$(LIBS_OF_ARCHIVE)|' -e 's|@LIBS_OF_FILES''@|$(LIBS_OF_FILES)|' \
	  -e "s|@from_here_to_include|$$include|" -e "s|@from_here_to_modules|$$modules|" $(srcdir)/$@.in >$@

install-exec-hook:
	$(MKDIR_P) "$(DESTDIR)$(bindir)"
	rm -f "$(DESTDIR)$(bindir)/allfold-scaling-report"
	ln -s "$(toolsdir)/scaling-report" "$(DESTDIR)$(bindir)/allfold-scaling-report"
uninstall-hook:
	rm -f "$(DESTDIR)$(bindir)/allfold-scaling-report"
	test -z "$(pypackagedir)" || rm -rf "$(DESTDIR)$(pypackagedir)/__pycache__"
	test -z "$(pypackagedir)" || rmdir "$(DESTDIR)$(pypackagedir)" 2>/dev/null || :

CLEANFILES += packaging/allfold packaging/$(PACKAGE_VERSION) $(cmake_DATA)
EXTRA_DIST += packaging/completion.bash packaging/modulefile.in packaging/allfold.def packaging/cmake/allfold-config.cmake.in \
	packaging/cmake/allfold-config-version.cmake.in packaging/README.md packaging/debian packaging/debian-folder packaging/Dockerfile packaging/spack/package.py

# The Spack recipe of a release: with the version, the checksum of the tarball beside it, and the address from which SOURCE_URL says it comes.
spack_recipe = $(distdir)-spack.py
SOURCE_URL = file://$(abs_builddir)/$(distdir).tar.gz
.PHONY: spack-recipe
spack-recipe: dist
	sum=`sha256sum $(distdir).tar.gz | cut -d ' ' -f 1` && \
	  sed "s|^    license(.*|&\n\n    version(\"$(PACKAGE_VERSION)\", sha256=\"$$sum\", url=\"$(SOURCE_URL)\")|" \
	  $(srcdir)/packaging/spack/package.py >$(spack_recipe)
CLEANFILES += $(spack_recipe)
