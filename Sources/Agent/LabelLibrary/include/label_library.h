// The one symbol of libtracer-labels.so, tracer_more_labels, leads to all that it has: see CSupport/layout.h.
