/* Prints text of any bytes, such as a file's name, on one line, in characters that a terminal shows. */
#pragma once

#include <stddef.h>
#include <stdio.h>

/* Length of the UTF-8 sequence at text, 0 if there is none. */
size_t text_utf8_length(const char *text);

/* Prints text, with ? for a control character, a mark that changes lines or directions, and a byte that is not UTF-8. */
void text_print(FILE *file, const char *text);

/* Says "allfold: ABOUT: WORDS" on standard error, both printed in this way; about may be NULL. */
void text_tell(const char *about, const char *words);
