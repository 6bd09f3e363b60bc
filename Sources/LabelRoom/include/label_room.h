// What libtracer-labels.so has is found by its one symbol, tracer_more_labels: see CSupport/layout.h.
