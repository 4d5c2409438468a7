# SPDX-License-Identifier: MIT
#
# The folders of conformance/ as ARCHITECTURE.md lists them, against the #include lines. The first
# file is ARCHITECTURE.md; the others hold code as `file:line:code`, without comments.
#
# A line of the list is `    folder -> the folders that it includes`, the lowest folder first. An
# arrow to a folder that is not on an earlier line is reported, so the arrows cannot have a cycle.

function listed(folder) { return folder in line_of }

# The folder of conformance/ that holds `path`; empty where none does.
function folder_of(path,    parts) {
    return split(path, parts, "/") > 2 && parts[1] == "conformance" ? parts[2] : ""
}

# `name` as `file` includes it, from the top of the tree. Names without a folder, and those of "..",
# are relative to the file.
function included_path(file, name) {
    if (name ~ /\// && name !~ /^\.\.?\//) return name
    sub(/[^\/]*$/, "", file)
    name = file name
    while (sub(/(^|\/)\.\//, "/", name) || sub(/[^\/.]+\/\.\.\//, "", name)) {}
    return name
}

function read_list(    parts, count, i) {
    if (/^#/) in_list = /^## The folders of conformance$/
    if (!in_list || !/^    [a-z_]+ +->/) return
    count = split($0, parts, " ")
    if (listed(parts[1])) {
        print "ARCHITECTURE.md:" FNR ": " parts[1] " is listed twice; remove one line"
        return
    }
    for (i = 3; i <= count; ++i) {
        if (listed(parts[i]))
            arrow[parts[1], parts[i]] = FNR
        else
            print "ARCHITECTURE.md:" FNR ": the arrow " parts[1] " -> " parts[i] \
                " does not point to an earlier line; move the data that both need down to model/"
    }
    line_of[parts[1]] = FNR
    text_of[parts[1]] = $0
    sub(/^ */, "", text_of[parts[1]])
}

function read_code(    file, line, code, name, from, to) {
    match($0, /^[^:]*:[0-9]*:/)
    code = substr($0, RLENGTH + 1)
    file = line = substr($0, 1, RLENGTH - 1)
    sub(/:[0-9]*$/, "", file)
    sub(/^.*:/, "", line)
    from = folder_of(file)
    if (from == "") return
    if (!(from in seen) && !listed(from))
        print file ":" line ": conformance/" from " is not in the list of folders in" \
            " ARCHITECTURE.md; add it, above the folders that include it"
    seen[from] = 1
    if (!listed(from) || code !~ /^[ \t]*#[ \t]*include[ \t]*"/) return
    name = code
    sub(/^[^"]*"/, "", name)
    sub(/".*$/, "", name)
    to = folder_of(included_path(file, name))
    if (to == "" || to == from) return
    used[from, to] = 1
    if (!((from, to) in arrow))
        print file ":" line ": " from "/ does not include " to "/; ARCHITECTURE.md lists what" \
            " it includes: " text_of[from]
}

FILENAME ~ /ARCHITECTURE\.md$/ { read_list() }
FILENAME !~ /ARCHITECTURE\.md$/ && /^conformance\// { read_code() }

END {
    for (folder in line_of) {
        if (!(folder in seen))
            print "ARCHITECTURE.md:" line_of[folder] ": conformance/" folder \
                " has no sources; remove the line"
    }
    for (key in arrow) {
        if (key in used) continue
        split(key, ends, SUBSEP)
        if (ends[1] in seen)
            print "ARCHITECTURE.md:" arrow[key] ": no file of " ends[1] "/ includes one of " \
                ends[2] "/; remove the arrow"
    }
}
