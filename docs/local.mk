# Documentation: manual pages in dist_man_MANS, pages to install in dist_doc_DATA.
dist_man_MANS += docs/allfold.1

# Installed as they lie here, so that their links hold: README.md and others in docdir, pages and pictures in docdir/docs.
dist_doc_DATA += README.md CHANGELOG.md CITATION.cff CONTRIBUTING.md LICENSE SECURITY.md
pagesdir = $(docdir)/docs
dist_pages_DATA = \
	docs/architecture.md \
	docs/cluster.md \
	docs/formats.md \
	docs/ladder.md \
	docs/library.md \
	docs/numerics.md \
	docs/performance.md docs/performance-log.md \
	docs/python.md \
	docs/reliability.md
install-data-local:
	$(MKDIR_P) "$(DESTDIR)$(pagesdir)/img"
	$(INSTALL_DATA) $(srcdir)/docs/img/*.svg "$(DESTDIR)$(pagesdir)/img"
uninstall-local:
	rm -rf "$(DESTDIR)$(pagesdir)/img"

# The walk up the ladder, its pictures, and the tools that draw and profile it; the benchmark's.
EXTRA_DIST += docs/ladder.md docs/img
# What the pages' pictures and generated tables are made of.
EXTRA_DIST += docs/results
EXTRA_DIST += \
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
