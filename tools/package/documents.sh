# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Which documents of docs/ each Debian package has, in /usr/share/doc/PACKAGE. Reads TREE.

declare -Ar DOCUMENTS=(
    [libkmes-dev]='errata event-loops event-model layouts library producer-socket'
    [kmes-tools]='kmesctl kmesctl-formats producer-socket record-format'
    [kmes-conformance]='errata event-model exploration failure-files in-ci layouts protocol
        read-a-failure run-the-suite testee-contract what-the-suite-cannot-show write-a-testee'
    [kmes-dkms]='kernel-module script-format'
)
# The first package that has a document is named for it.
readonly DOCUMENT_PACKAGES=(libkmes-dev kmes-tools kmes-conformance kmes-dkms)

# has_document PACKAGE DOCUMENT
has_document() { [[ " ${DOCUMENTS[$1]-} " == *[[:space:]]"$2"[[:space:]]* ]]; }

# reword PACKAGE FILE: adapts commands, and the names of documents, to the package. A document of
# another package, or of none, gets the place where it is.
# shellcheck disable=SC2016  # backquotes of the documents
reword() {
    local package=$1 document other known=' '
    local script='s|tools/kmes conformance|kmes-conformance|g'
    for document in ${DOCUMENTS[$package]-}; do
        script+=";s|docs/$document\\.md|$document.md|g"
    done
    for other in "${DOCUMENT_PACKAGES[@]}"; do
        for document in ${DOCUMENTS[$other]}; do
            has_document "$package" "$document" || [[ $known == *" $document "* ]] ||
                script+=";s#\`(docs/)?$document\\.md\`#\`$document.md\` of $other#g"
            known+="$document "
        done
    done
    script+=';s|`docs/([a-z0-9/-]+\.md)`|`\1` of the source tree|g'
    other=$([ "$package" = libkmes-dev ] || echo ' of libkmes-dev')
    script+=";s|\`bindings/cpp/README\\.md\`|\`README-cpp.md\`$other|g"
    script+=';s|`bindings/python/README\.md`|`README.md` of python3-kmes|g'
    script+=';s|`bindings/rust/README\.md`|`README.md` of librust-kmes-dev|g'
    sed -E -e "$script" -- "$2"
}

# put_documents PACKAGE FOLDER: the documents of the package, and the changelog of the tree.
put_documents() {
    local document
    for document in ${DOCUMENTS[$1]-}; do
        reword "$1" "$TREE/docs/$document.md" >"$2/$document.md" || return
    done
    reword "$1" "$TREE/CHANGELOG.md" >"$2/CHANGELOG.md"
}
