// SQLite: databases in a file. https://www.sqlite.org/cintro.html
#include <sqlite3.h>

// A pointer made of -1, which Swift does not import: SQLite copies what is bound.
static const sqlite3_destructor_type sqlite_copies = SQLITE_TRANSIENT;
