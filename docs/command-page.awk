# The manual page of one command, of its paragraph and its examples in allfold.1 and its --help:
#   allfold sum --help | awk -v command=sum -f command-page.awk allfold.1 -

function roff(text)
{
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    gsub(/'/, "\\(aq", text)
    gsub(/\^/, "\\(ha", text)
    return text ~ /^\./ ? "\\&" text : text
}

FNR == NR {
    if (/^\.SH /)
        section = $2
    if (section == "EXAMPLES") {
        if (/^\.nf/)
            lines = ""
        else if (/^\.fi/) {
            if (index(lines, "allfold " roff(command) " "))
                examples = examples ".PP\n" intro ".PP\n.nf\n.RS\n" lines ".RE\n.fi\n"
            intro = lines = ""
        } else if (!/^\./ && $0 ~ /:$/)
            intro = $0 "\n"
        else if (!/^\./)
            lines = lines $0 "\n"
    }
    if (/^\.TP$/) {
        getline
        term = $2
        gsub(/\\/, "", term)
        found = section == "COMMANDS" && term == command
    } else if (/^\.(SH|PP)/)
        found = 0
    else if (found)
        description = description $0 "\n"
    next
}

/^Usage: / {
    usage = substr($0, length("Usage: allfold " command " ") + 1)
    next
}

index($0, command ": ") == 1 {
    text = substr($0, length(command ": ") + 1)
    sub(/\.$/, "", text)
    printf ".TH ALLFOLD-%s 1 \"\" \"allfold\" \"User Commands\"\n", toupper(command)
    printf ".SH NAME\nallfold\\-%s \\- %s\n", roff(command), roff(text)
    printf ".SH SYNOPSIS\n.B allfold %s\n%s\n.br\n.B mpirun \\-n\n.I RANKS\n.B allfold %s\n%s\n", roff(command), roff(usage), roff(command), roff(usage)
    printf ".SH DESCRIPTION\n%s.PP\n", description
    print ".BR allfold (1)\nexplains the options in full, and has the sections to which this page refers.\n.SH OPTIONS"
    next
}

/^Options:$/ { next }

match($0, /^ +(-[a-z], )?--[^ ]+/) {
    option = substr($0, 1, RLENGTH)
    text = substr($0, RLENGTH + 1)
    sub(/^ +/, "", option)
    sub(/^ +/, "", text)
    printf ".TP\n.B %s\n%s\n", roff(option), roff(text)
    next
}

/^Exit status: / {
    printf "%s.SH EXIT STATUS\n%s\n", notes ? ".fi\n" : "", roff(substr($0, length("Exit status: ") + 1))
    next
}

/./ || notes {
    if (!notes++)
        print ".SH NOTES\n.nf"
    print roff($0)
}

END {
    if (examples != "")
        printf ".SH EXAMPLES\n%s", substr(examples, 5)
    print ".SH SEE ALSO\n.BR allfold (1)"
}
