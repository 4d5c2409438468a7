# SPDX-License-Identifier: MIT
#
# Prints the prose of documents as `file:line:text`: without code blocks (fenced or indented) and
# without code spans. A code span ends in its line.

FNR == 1 { is_fenced = 0 }
/^ *```/ { is_fenced = !is_fenced; next }
is_fenced || /^    / { next }
{
    gsub(/`[^`]*`/, "``")
    print FILENAME ":" FNR ":" $0
}
