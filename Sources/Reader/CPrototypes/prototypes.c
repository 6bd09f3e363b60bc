// In C for #embed, which Swift does not have.
#include "prototypes.h"

static const unsigned char text[] = {
#embed "prototypes.txt"
};
const unsigned long prototypes_text_bytes = sizeof(text);

const unsigned char *prototypes_address(void) { return text; }
