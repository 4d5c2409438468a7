# SPDX-License-Identifier: MIT
#
# Reads what code.awk prints and names each function of more than `limit` lines, from the first line
# of its head to its closing brace. What opens a function is judged by the text before the brace: it
# must end like the head of a function. Blocks inside a function (and lambdas there) belong to it.

BEGIN { limit = 70 }

{
    split($0, part, ":")
    code = substr($0, length(part[1]) + length(part[2]) + 3)
    if (part[1] != file) {
        file = part[1]
        depth = 0; head = ""; function_depth = 0; if_depth = 0; in_macro = 0
    }
    line = part[2] + 0
    if (in_macro || code ~ /^[ \t]*#/) {
        preprocessor(code)
        in_macro = (code ~ /\\$/)
        next
    }
    scan(code)
}

# Branches of an #if may each open the same brace: every branch starts from the depth before it.
function preprocessor(code) {
    if (in_macro) return
    if (code ~ /^[ \t]*#[ \t]*if/) saved_depth[++if_depth] = depth
    else if (code ~ /^[ \t]*#[ \t]*el/ && if_depth > 0) depth = saved_depth[if_depth]
    else if (code ~ /^[ \t]*#[ \t]*endif/ && if_depth > 0) if_depth--
}

function scan(code,    at, char) {
    while ((at = match(code, /[{};]/)) > 0) {
        add_to_head(substr(code, 1, at - 1))
        char = substr(code, at, 1)
        code = substr(code, at + 1)
        if (char == "{") open_brace()
        else if (char == "}") close_brace()
        else if (parentheses(head) > 0) add_to_head(";")
        else head = ""
    }
    add_to_head(code)
}

function add_to_head(text) {
    if (function_depth) return
    gsub(/^[ \t]+|[ \t]+$/, "", text)
    # A label of access is no part of what follows.
    if (head == "") sub(/^(public|private|protected)[ \t]*:/, "", text)
    if (text == "") return
    if (head == "") head_line = line
    head = head " " text
}

function parentheses(text,    opened, closed, copy) {
    copy = text
    opened = gsub(/\(/, "", copy)
    closed = gsub(/\)/, "", copy)
    return opened - closed
}

function open_brace() {
    depth++
    kept[depth] = ""
    if (function_depth) return
    if (is_function(head)) {
        function_depth = depth
        start_line = head_line
        head = ""
    } else if (is_scope(head)) {
        head = ""
    } else {
        # An initialiser: its head goes on behind the closing brace.
        kept[depth] = head
        kept_line[depth] = head_line
        head = ""
    }
}

function close_brace() {
    if (function_depth && depth == function_depth) {
        if (line - start_line + 1 > limit) {
            printf "%s:%d: a function of %d lines; at most %d, so give a part of it a name\n",
                   file, start_line, line - start_line + 1, limit
        }
        function_depth = 0
        head = ""
    } else if (!function_depth) {
        head = kept[depth] == "" ? "" : kept[depth] " {}"
        head_line = kept_line[depth]
    }
    if (depth > 0) depth--
}

function is_scope(text) {
    return text ~ /^ (inline )?namespace/ || text ~ /extern ""$/ ||
           text ~ /(^| )(class|struct|union|enum)( |$)/ && text !~ /=/
}

# The head of a function ends with its parameters, a qualifier, a trailing return type or the
# initialisers of a constructor. Outside of functions nothing else ends so but an initialiser, which
# has a `=` of its own.
function is_function(text,    copy) {
    copy = text
    gsub(/operator *[-+*\/%^&|~!=<>,]+/, "operator", copy)
    while (gsub(/\([^()]*\)/, "@", copy)) {}
    gsub(/(==|<=|>=|!=)/, "", copy)
    if (copy ~ /=/) return copy ~ /= *\[[^]]*\] *@/
    if (copy ~ /@ *(const|noexcept|override|final|mutable|try|&|@| )*$/) return 1
    if (copy ~ /@ *(const|noexcept|override|final|mutable|@| )*->[^;]*$/) return 1
    return copy ~ /@ *(noexcept|@| )*:[^:].*(@|\{\})$/
}
