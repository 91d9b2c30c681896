# Documentation: manual pages in dist_man_MANS, pages to install in dist_doc_DATA.
dist_man_MANS += docs/allfold.1

# The walk up the ladder, its pictures, and the tools that draw and profile it.
EXTRA_DIST += docs/ladder.md docs/img
EXTRA_DIST += \
	tools/draw-ladder \
	tools/ladder_json.py \
	tools/ladder_patterns.py \
	tools/ladder_plots.py \
	tools/ladder_svg.py \
	tools/ladder_tables.py \
	tools/profile-ladder
