// The page of `tracer coverage --html`: Sources/Lab/FunctionUse/Resources.
#ifndef COVERAGE_PAGE_H
#define COVERAGE_PAGE_H

#include <stddef.h>

struct coverage_file {
    const unsigned char *bytes;
    size_t count;
};
extern const struct coverage_file coverage_page_html, coverage_page_css;

#endif
