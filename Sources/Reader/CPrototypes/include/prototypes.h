// Prototypes of well-known functions, as text (docs/reference/prototypes.md).
#ifndef PROTOTYPES_H
#define PROTOTYPES_H

extern const unsigned long prototypes_text_bytes;
const unsigned char *prototypes_address(void);

#endif
