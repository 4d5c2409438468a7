# SPDX-License-Identifier: MIT
#
# The size of classes. The first file is large_classes.txt; the others hold code as
# `file:line:code`, without comments and strings. Only headers of conformance/stage and
# conformance/tracer are read.
#
# Counts are of one class without its nested classes: public functions, each overload by itself,
# without constructors, destructor and assignments; data members, without static ones; and public
# data members of a `class` (a struct has no invariants). large_classes.txt lists the classes over
# the limits with their counts, which may only fall.

function is_class(kind) { return kind == "class" || kind == "struct" }

function push(kind, name) {
    scope[++depth] = kind
    name_of[depth] = name
    access[depth] = kind == "class" ? "private" : "public"
    line_of[depth] = line
    functions[depth] = data[depth] = public_data[depth] = 0
}

# The name of the constructors of the class in scope: Engine of Tracer::Engine.
function own_name(    name) {
    name = name_of[depth]
    sub(/.*::/, "", name)
    return name
}

# One declaration of the class in scope, up to `;` or `{`.
function declare(text,    head) {
    gsub(/^[ \t]+|[ \t]+$/, "", text)
    sub(/^(\[\[[a-z]+\]\] *)+/, "", text)
    if (text == "" || text ~ /^(using|friend|typedef|static_assert|template|class|struct|enum)[ (]/)
        return
    while (gsub(/<[^<>()]*(\([^<>()]*\))?[^<>()]*>/, "", text)) {}
    head = text
    gsub(/operator *[^ (a-z]+/, "operator_", head)
    sub(/=.*/, "", head)
    if (head ~ /\(/) {
        sub(/ *\(.*/, "", head)
        sub(/.*[ *&]/, "", head)
        if (access[depth] == "public" && head != own_name() && head !~ /^~/ &&
            text !~ /operator *= *\(/)
            ++functions[depth]
    } else if (text !~ /^(inline *)?(static|constexpr) /) {
        ++data[depth]
        if (access[depth] == "public") ++public_data[depth]
    }
}

# compare WHAT COUNT MOST: reports a count above the limit.
function compare(what, count, most) {
    if (count > most)
        print file ":" line_of[depth] ": " name_of[depth] " has " count " " what "; at most " most
}

function finish_class(    name, is_listed) {
    name = name_of[depth]
    is_listed = name in list_line
    if (scope[depth] == "struct") public_data[depth] = 0
    compare("public functions", functions[depth], is_listed ? listed_functions[name] : 25)
    compare("data members", data[depth], is_listed ? listed_data[name] : 20)
    compare("public data members", public_data[depth], is_listed ? listed_public_data[name] : 0)
    if (!is_listed) return
    seen[name] = 1
    if (functions[depth] < listed_functions[name] || data[depth] < listed_data[name] ||
        public_data[depth] < listed_public_data[name])
        print list ":" list_line[name] ": " name " has only " functions[depth] \
            " public functions, " data[depth] " data members and " public_data[depth] \
            " public ones; lower the numbers, or remove the line"
}

function open_brace(    parts, head) {
    head = text
    gsub(/^[ \t]+|[ \t]+$/, "", head)
    sub(/^template *<.*> */, "", head)
    if (head ~ /^(class|struct) +[A-Za-z_]/ && head !~ /\(/) {
        split(head, parts, " ")
        sub(/:$/, "", parts[2])
        push(parts[1], parts[2])
    } else if (head ~ /^(inline +)?namespace( |$)/ || head ~ /^extern /) {
        push("namespace", "")
    } else if (head ~ /^enum /) {
        push("enum", "")
    } else if (depth > 0 && is_class(scope[depth]) && head !~ /\)/) {
        push("value", text)  # of a data member
    } else {
        if (depth > 0 && is_class(scope[depth])) declare(text)
        push("body", "")
    }
    text = ""
}

function close_brace(    kind, before) {
    kind = scope[depth]
    before = name_of[depth]
    if (is_class(kind)) finish_class()
    --depth
    # `struct X { ... } member;` has a member, and the value of a member ends with `;`.
    text = kind == "value" ? before : kind == "enum" || is_class(kind) ? "\001" : ""
}

function read_line(code,    i, c) {
    if (code ~ /^[ \t]*#/) return
    for (i = 1; i <= length(code); ++i) {
        c = substr(code, i, 1)
        if (c == "{") {
            open_brace()
        } else if (c == "}") {
            if (depth > 0) close_brace()
        } else if (c == ";") {
            sub(/^\001/, "", text)
            if (depth > 0 && is_class(scope[depth])) declare(text)
            text = ""
        } else if (c == ":" && text ~ /^[ \t]*(public|protected|private)[ \t]*$/) {
            gsub(/[ \t]/, "", text)
            access[depth] = text
            text = ""
        } else {
            text = text c
        }
    }
    text = text " "
}

FILENAME ~ /large_classes\.txt$/ {
    if (/^#/ || /^$/) next
    list = "tools/check/large_classes.txt"
    list_line[$1] = FNR
    listed_functions[$1] = $2
    listed_data[$1] = $3
    listed_public_data[$1] = $4
    if (NF < 5)
        print list ":" FNR ": no reason; expected NAME FUNCTIONS DATA PUBLIC_DATA and a reason"
    next
}

/^conformance\/(stage|tracer)\/[a-z_]*\.h:/ {
    match($0, /^[^:]*:[0-9]*:/)
    code = substr($0, RLENGTH + 1)
    head = substr($0, 1, RLENGTH - 1)
    split(head, parts, ":")
    if (parts[1] != file) depth = 0
    if (parts[1] != file) text = ""
    file = parts[1]
    line = parts[2]
    read_line(code)
}

END {
    for (name in list_line)
        if (file != "" && !(name in seen))
            print list ":" list_line[name] ": there is no class " name "; remove the line"
}
