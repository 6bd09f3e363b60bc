// In C for #embed: Swift has no such thing, and optimizes an array literal of 40,000 bytes element by element.
#include "page_files.h"

#define PAGE_FILE(name) const struct page_file page_##name = {name, sizeof(name)}

static const unsigned char view_html[] = {
#embed "../TracePage/Resources/view.html"
};
PAGE_FILE(view_html);

static const unsigned char view_css[] = {
#embed "../TracePage/Resources/view.css"
};
PAGE_FILE(view_css);

static const unsigned char unfinished_html[] = {
#embed "../TracePage/Resources/unfinished.html"
};
PAGE_FILE(unfinished_html);

static const unsigned char unfinished_css[] = {
#embed "../TracePage/Resources/unfinished.css"
};
PAGE_FILE(unfinished_css);

static const unsigned char unfinished_js[] = {
#embed "../TracePage/Resources/unfinished.js"
};
PAGE_FILE(unfinished_js);

static const unsigned char history_html[] = {
#embed "../TracePage/Resources/history.html"
};
PAGE_FILE(history_html);

static const unsigned char history_css[] = {
#embed "../TracePage/Resources/history.css"
};
PAGE_FILE(history_css);

static const unsigned char history_js[] = {
#embed "../TracePage/Resources/history.js"
};
PAGE_FILE(history_js);

static const unsigned char schema_mjs[] = {
#embed "../TracePage/Resources/schema.mjs"
};
PAGE_FILE(schema_mjs);

static const unsigned char numbers_mjs[] = {
#embed "../TracePage/Resources/numbers.mjs"
};
PAGE_FILE(numbers_mjs);

static const unsigned char tree_mjs[] = {
#embed "../TracePage/Resources/tree.mjs"
};
PAGE_FILE(tree_mjs);

static const unsigned char colours_mjs[] = {
#embed "../TracePage/Resources/colours.mjs"
};
PAGE_FILE(colours_mjs);

static const unsigned char search_mjs[] = {
#embed "../TracePage/Resources/search.mjs"
};
PAGE_FILE(search_mjs);

static const unsigned char timeline_mjs[] = {
#embed "../TracePage/Resources/timeline.mjs"
};
PAGE_FILE(timeline_mjs);

static const unsigned char table_mjs[] = {
#embed "../TracePage/Resources/table.mjs"
};
PAGE_FILE(table_mjs);

static const unsigned char merge_mjs[] = {
#embed "../TracePage/Resources/merge.mjs"
};
PAGE_FILE(merge_mjs);

static const unsigned char selection_mjs[] = {
#embed "../TracePage/Resources/selection.mjs"
};
PAGE_FILE(selection_mjs);

static const unsigned char threads_mjs[] = {
#embed "../TracePage/Resources/threads.mjs"
};
PAGE_FILE(threads_mjs);

static const unsigned char canvas_mjs[] = {
#embed "../TracePage/Resources/canvas.mjs"
};
PAGE_FILE(canvas_mjs);

static const unsigned char flame_mjs[] = {
#embed "../TracePage/Resources/flame.mjs"
};
PAGE_FILE(flame_mjs);

static const unsigned char states_mjs[] = {
#embed "../TracePage/Resources/states.mjs"
};
PAGE_FILE(states_mjs);

static const unsigned char samples_mjs[] = {
#embed "../TracePage/Resources/samples.mjs"
};
PAGE_FILE(samples_mjs);

static const unsigned char view_mjs[] = {
#embed "../TracePage/Resources/view.mjs"
};
PAGE_FILE(view_mjs);
