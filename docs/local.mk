# Documentation: manual pages in dist_man_MANS, pages to install in dist_doc_DATA.
dist_man_MANS += docs/allfold.1

# man allfold-sum: a short page for each command in allfold.1. Where the program does not run, as after cross-compiling, one that leads there.
man_commands = `sed -n '/^\.SH COMMANDS/,/^\.SH INPUT/{/^\.TP/{n;s/^\.B //p;};}' $(srcdir)/docs/allfold.1 | tr -d '\\\\'`
noinst_DATA = docs/command-pages
docs/command-pages: docs/allfold.1 docs/command-page.awk allfold$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && for command in $(man_commands); do \
	  if ASAN_OPTIONS=detect_leaks=0 ./allfold$(EXEEXT) $$command --help >$@ 2>/dev/null; then \
	    $(AWK) -v command=$$command -f $(srcdir)/docs/command-page.awk $(srcdir)/docs/allfold.1 $@; \
	  else echo ".so man1/allfold.1"; fi >docs/allfold-$$command.1 || exit 1; \
	done
EXTRA_DIST += docs/command-page.awk
CLEANFILES += docs/command-pages docs/allfold-*.1

# Installed as they lie here, so that their links hold: README.md and others in docdir, pages and pictures in docdir/docs.
dist_doc_DATA += README.md CHANGELOG.md CITATION.cff CONTRIBUTING.md LICENSE SECURITY.md
pagesdir = $(docdir)/docs
dist_pages_DATA = \
	docs/architecture.md \
	docs/cluster.md \
	docs/formats.md \
	docs/ladder.md \
	docs/library.md \
	docs/compare.md \
	docs/order.md \
	docs/missing.md \
	docs/numerics.md \
	docs/performance.md docs/performance-log.md \
	docs/python.md \
	docs/reliability.md \
	docs/weights.md
install-data-local:
	$(MKDIR_P) "$(DESTDIR)$(pagesdir)/img"
	$(INSTALL_DATA) $(srcdir)/docs/img/*.svg "$(DESTDIR)$(pagesdir)/img"
	$(MKDIR_P) "$(DESTDIR)$(man1dir)"
	for command in $(man_commands); do $(INSTALL_DATA) docs/allfold-$$command.1 "$(DESTDIR)$(man1dir)" || exit 1; done
uninstall-local:
	for command in $(man_commands); do rm -f "$(DESTDIR)$(man1dir)/allfold-$$command.1"; done
	rm -rf "$(DESTDIR)$(pagesdir)/img"

# The walk up the ladder, its pictures, and the tools that draw and profile it; the benchmark's.
EXTRA_DIST += docs/ladder.md docs/img
# What the pages' pictures and generated tables are made of.
EXTRA_DIST += docs/results
EXTRA_DIST += \
	tools/bench-commands \
	tools/bench-peers \
	tools/bench_json.py \
	tools/bench_plots.py \
	tools/compact-results \
	tools/draw-ladder \
	tools/json_reports.py \
	tools/ladder_json.py \
	tools/ladder_patterns.py \
	tools/ladder_plots.py \
	tools/ladder_svg.py \
	tools/ladder_tables.py \
	tools/plot-bench \
	tools/profile-ladder \
	tools/python-overhead
