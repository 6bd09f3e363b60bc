/* A program in C that runs OCaml: plugin.ml with its runtime in a shared library. */
#include <caml/mlvalues.h>
#include <caml/callback.h>

int main(int count, char **arguments) {
    caml_startup(arguments);
    return 0;
}
