// In C for #embed.
#include "coverage_page.h"

static const unsigned char html[] = {
#embed "../FunctionUse/Resources/coverage.html"
};
static const unsigned char css[] = {
#embed "../FunctionUse/Resources/coverage.css"
};
const struct coverage_file coverage_page_html = {html, sizeof(html)}, coverage_page_css = {css, sizeof(css)};
