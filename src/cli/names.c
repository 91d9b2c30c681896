/* Checks the names of files in options: see names.h. */
#include "cli/names.h"

allfold_status names_refuse_same(const char *option, const char *name, const char *other, const char *what, struct error *error)
{
    if (other == NULL || error->status != ALLFOLD_OK || !file_same(name, other))
        return error->status;
    return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: --%s would replace %s: expected the name of another file",
                     file_shown(name), option, what);
}

void names_refuse_input(struct session *session, const char *option, const char *name, const char *remark)
{
    if (session->error.status == ALLFOLD_OK && array_has_file(&session->input, session->settings->operands, session->settings->operand_count, name))
        error_set(&session->error, ALLFOLD_BAD_ARGUMENT, "%s: --%s would replace the input: expected the name of another file%s",
                  file_shown(name), option, remark);
}

void names_refuse_read(struct session *session, const struct array_info *info, const char *called, const char *what)
{
    const struct settings *const settings = session->settings;
    const char *const names[] = {settings->output, settings->values}, *const options[] = {"output", "values"};
    for (int i = 0; i < 2; i++)
        if (names[i] != NULL && array_has_file(info, &called, 1, names[i]))
            error_set(&session->error, ALLFOLD_BAD_ARGUMENT, "%s: --%s would replace %s: expected the name of another file", file_shown(names[i]),
                      options[i], what);
}
