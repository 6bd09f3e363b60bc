// libdeflate: compresses what is whole in memory, two to three times as fast as zlib.
#include <libdeflate.h>
