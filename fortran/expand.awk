# Makes allfold.f90 of allfold.f90.in, with the constants of allfold.h: awk -f expand.awk allfold.h allfold.f90.in
#   !constants            becomes the constants of all enumerations
#   !each A B ... !end    the lines between, once for each element type; "!each A B by C D": once for each pair, of x and of y
#       @T@         the types, as a part of a name
#       @IN(x)@     declares x, an array of any rank that is read; @OUT(y)@ one that is written; @INOUT(x)@ one that is both
#       @PART(x)@   x as an allfold_array
# The element type ARRAY stands for an allfold_array, which the caller has made.
BEGIN {
    fortran["F32"] = "real(c_float)"
    fortran["F64"] = "real(c_double)"
    fortran["INT8"] = "integer(c_int8_t)"
    fortran["INT16"] = "integer(c_int16_t)"
    fortran["INT32"] = "integer(c_int32_t)"
    fortran["INT64"] = "integer(c_int64_t)"
    fortran["BOOL"] = "logical(c_bool)"
}

# allfold.h: the lists ALLFOLD_TYPES and ALLFOLD_FOLDS, then enumerations, which may name one of them.
FNR == NR {
    header = header " " $0
    next
}

FNR == 1 { constants_read(header) }
/^ *!constants$/ { printf "%s", constants; next }
/^ *!each / { each = $0; body = ""; next }
/^ *!end$/ { expand(each, body); each = ""; next }
each != "" { body = body $0 "\n"; next }
{ print }

function constants_read(text,    name, items, n, i, value) {
    while (match(text, /\/\*([^*]|\*+[^*\/])*\*+\//))
        text = substr(text, 1, RSTART - 1) substr(text, RSTART + RLENGTH)
    while (match(text, /#define ALLFOLD_[A-Z]+\(X\)([ \\]+X\([^()]*("[^"]*")?[^()]*\))+/)) {
        name = substr(text, RSTART + 8, RLENGTH - 8)
        text = substr(text, 1, RSTART - 1) substr(text, RSTART + RLENGTH)
        items = ""
        n = split(name, parts, /X\(/)
        for (i = 2; i <= n; i++)
            items = items "ALLFOLD_" substr(parts[i], 1, index(parts[i], ",") - 1) ","
        lists[substr(name, 1, index(name, "(") - 1)] = items
    }
    while (match(text, /typedef enum \{[^}]*\}/)) {
        items = substr(text, RSTART + 14, RLENGTH - 15)
        text = substr(text, RSTART + RLENGTH)
        gsub(/#(define [A-Z_]+\([^)]*\) [A-Z_#]+,|undef [A-Z_]+)/, "", items)
        for (name in lists)
            sub(name "\\([A-Z_]+\\)", lists[name], items)
        value = 0
        n = split(items, parts, ",")
        for (i = 1; i <= n; i++) {
            gsub(/ /, "", parts[i])
            if (split(parts[i], pair, "=") == 2)
                value = pair[2]
            if (parts[i] != "")
                constants = constants "  integer(c_int), parameter, public :: " pair[1] " = " value++ "\n"
        }
    }
}

function expand(line, body,    pair, x, y, nx, ny, i, j) {
    sub(/^ *!each /, "", line)
    ny = 0
    if (split(line, pair, " by ") == 2)
        ny = split(pair[2], y, " ")
    nx = split(pair[1], x, " ")
    for (i = 1; i <= nx; i++)
        if (ny == 0)
            printf "%s", filled(body, x[i], x[i], tolower(x[i]))
        else
            for (j = 1; j <= ny; j++)
                printf "%s", filled(body, x[i], y[j], tolower(x[i] "_" y[j]))
}

# The text with its marks replaced; y has type_y, all else type_x.
function filled(text, type_x, type_y, suffix,    mark, kind, name, type, done) {
    while (match(text, /@[A-Z]+(\([a-z]+\))?@/)) {
        mark = substr(text, RSTART + 1, RLENGTH - 2)
        kind = name = mark
        sub(/\(.*/, "", kind)
        gsub(/.*\(|\)/, "", name)
        type = name == "y" ? type_y : type_x
        done = done substr(text, 1, RSTART - 1) (kind == "T" ? suffix : kind == "PART" ? part(name, type) : declared(kind, name, type))
        text = substr(text, RSTART + RLENGTH)
    }
    return done text
}

function part(name, type) {
    return type == "ARRAY" ? name : "allfold_array(c_loc(" name "), size(" name ", kind=c_int64_t), ALLFOLD_" type ")"
}

function declared(kind, name, type) {
    if (type == "ARRAY")
        return "type(allfold_array), intent(in) :: " name
    return fortran[type] ", intent(" (kind == "IN" ? "in" : "inout") "), target, contiguous :: " name "(..)"
}
