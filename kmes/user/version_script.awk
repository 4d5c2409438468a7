# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Turns libkmes_api.txt into the version script of the linker: a node for each version, and each
# node is the parent of the next. Everything that the table does not name is local.

$1 ~ /^kmes_/ && $2 ~ /^KMES_/ {
    if (!($2 in members)) order[++nodes] = $2
    members[$2] = members[$2] "    " $1 ";\n"
}

END {
    # In the order of the versions: KMES_0.9 before KMES_0.20.
    for (i = 2; i <= nodes; i++)
        for (j = i; j > 1 && number(order[j]) < number(order[j - 1]); j--) {
            name = order[j]
            order[j] = order[j - 1]
            order[j - 1] = name
        }
    for (i = 1; i <= nodes; i++)
        printf "%s {\n  global:\n%s%s}%s;\n", order[i], members[order[i]],
            i == 1 ? "  local:\n    *;\n" : "", i == 1 ? "" : " " order[i - 1]
}

function number(name, parts) {
    sub(/^KMES_/, "", name)
    split(name, parts, ".")
    return parts[1] * 100000 + parts[2]
}
