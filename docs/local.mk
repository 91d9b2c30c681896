# Documentation: manual pages in dist_man_MANS, pages to install in dist_doc_DATA.
dist_man_MANS += docs/allfold.1
