"""Each module has suites: a list."""
