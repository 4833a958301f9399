/* setlocale.c - makes a program behave like a host that uses the locale of the environment.
 *
 * A shared library for LD_PRELOAD. Toolkits such as GTK, Qt and R call setlocale in the same way. */
#include <locale.h>
#include <stdlib.h>

__attribute__((constructor)) static void use_locale(void) {
    if (!setlocale(LC_ALL, "")) abort();
}
