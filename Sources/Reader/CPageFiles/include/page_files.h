// The files of Sources/Reader/TracePage/Resources, in the program: none is looked for when it runs.
#pragma once
#include <stddef.h>

struct page_file {
    const unsigned char *bytes;
    size_t count;
};

extern const struct page_file page_view_html, page_view_css, page_unfinished_html, page_unfinished_css, page_unfinished_js,
    page_history_html, page_history_css, page_history_js;
// Modules of the script of view.html.
extern const struct page_file page_schema_mjs, page_numbers_mjs, page_tree_mjs, page_colours_mjs, page_search_mjs, page_timeline_mjs,
    page_table_mjs, page_merge_mjs, page_selection_mjs, page_threads_mjs, page_canvas_mjs, page_flame_mjs, page_states_mjs,
    page_samples_mjs, page_view_mjs;
