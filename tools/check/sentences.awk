# SPDX-License-Identifier: MIT
#
# Reports sentences of documents with more than `most` words. Rows of tables, headings and code
# blocks are left out; a code span counts as one word. A sentence ends at a full stop, a question
# mark or an exclamation mark before a space. The line is the first one of the paragraph.

function judge_sentence() {
    if (words > most)
        print file ":" line ": a sentence of " words " words; at most " most ": " sentence
    words = 0
    sentence = ""
}

function judge_paragraph(   parts, count, i) {
    gsub(/`[^`]*`/, "CODE", paragraph)
    count = split(paragraph, parts, " ")
    for (i = 1; i <= count; i++) {
        if (parts[i] ~ /[[:alnum:]]/) words++
        if (words <= 8) sentence = sentence (sentence == "" ? "" : " ") parts[i]
        if (parts[i] ~ /[.?!][)"*_]*$/) judge_sentence()
    }
    judge_sentence()
    paragraph = ""
}

FNR == 1 { judge_paragraph(); is_fenced = 0; file = FILENAME }
/^ *```/ { judge_paragraph(); is_fenced = !is_fenced; next }
is_fenced { next }
/^ *$/ || /^[#|<]/ { judge_paragraph(); next }
/^    / && paragraph == "" { next }
/^ *([-*]|[0-9]+\.) / { judge_paragraph(); sub(/^ *([-*]|[0-9]+\.) /, "") }
{
    if (paragraph == "") line = FNR
    paragraph = paragraph " " $0
}
END { judge_paragraph() }
