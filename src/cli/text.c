/* Prints text of any bytes: see text.h. */
#include "cli/text.h"

#include <stdbool.h>

size_t text_utf8_length(const char *bytes)
{
    const unsigned char *const text = (const unsigned char *)bytes;
    static const unsigned char first[] = {0x80, 0xc2, 0xe0, 0xf0, 0xf5}; /* of lengths 1, none, 2, 3, 4, none */
    static const size_t lengths[] = {1, 0, 2, 3, 4, 0};
    size_t class = 0;
    while (class < sizeof first && text[0] >= first[class])
        class++;
    const size_t length = lengths[class];
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    /* overlong forms, surrogates, beyond U+10FFFF */
    const bool wrong = (text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
                       (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f);
    return wrong ? 0 : length;
}

/* Whether the sequence at text is a control or format character, not a visible one: the controls of ASCII and U+0080 to U+009F,
   the separators U+2028 and U+2029, the directions U+202A to U+202E and U+2066 to U+2069. */
static bool is_control(const unsigned char *text, size_t length)
{
    if (length == 1)
        return text[0] < ' ' || text[0] == 0x7f;
    if (length == 2)
        return text[0] == 0xc2 && text[1] < 0xa0;
    return length == 3 && text[0] == 0xe2 && ((text[1] == 0x80 && text[2] >= 0xa8 && text[2] <= 0xae)
                                              || (text[1] == 0x81 && text[2] >= 0xa6 && text[2] <= 0xa9));
}

void text_print(FILE *file, const char *text)
{
    while (*text != '\0') {
        const size_t length = text_utf8_length(text);
        if (length == 0 || is_control((const unsigned char *)text, length))
            putc('?', file);
        else
            fwrite(text, 1, length, file);
        text += length > 0 ? length : 1;
    }
}

void text_tell(const char *about, const char *words)
{
    fputs("allfold: ", stderr);
    if (about != NULL) {
        text_print(stderr, about);
        fputs(": ", stderr);
    }
    text_print(stderr, words);
    putc('\n', stderr);
}
