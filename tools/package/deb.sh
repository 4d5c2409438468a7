# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# What the makers of Debian packages share: the date of all files, the control files, and a dpkg-deb
# call that gives the same bytes for the same tree. Reads TREE and OUTPUT.

# shellcheck source-path=SCRIPTDIR
source "$(dirname -- "${BASH_SOURCE[0]}")/files.sh"
# shellcheck source-path=SCRIPTDIR
source "$(dirname -- "${BASH_SOURCE[0]}")/documents.sh"

readonly MAINTAINER='The KMES authors <authors@kmes.invalid>'

# Fills VERSION, RELEASE_DATE and SCRATCH, a folder that is removed with the script.
begin_packages() {
    VERSION=$(cat -- "$TREE/VERSION")
    RELEASE_DATE=$(release_date)
    SOURCE_DATE_EPOCH=$(date -u -d "$RELEASE_DATE" +%s)
    export SOURCE_DATE_EPOCH
    SCRATCH=$(mktemp -d)
    trap 'rm -rf -- "$SCRATCH"' EXIT
    mkdir -p -- "$OUTPUT"
}

# write_changelog PACKAGE FOLDER
write_changelog() {
    printf '%s (%s) unstable; urgency=medium\n\n  * CHANGELOG.md has the changes.\n\n -- %s  %s\n' \
        "$1" "$VERSION" "$MAINTAINER" "$(date -u -R -d "@$SOURCE_DATE_EPOCH")" |
        gzip -9n >"$2/changelog.gz"
}

# finish FOLDER PACKAGE FIELDS [ARCHITECTURE]: writes the control files, FIELDS among them, and
# makes the package. Files of FOLDER.control are added to them.
finish() {
    local folder=$1 package=$2 fields=$3 architecture=${4-amd64} size file
    size=$(find "$folder/usr" -type f -printf '%s\n' |
        awk '{ bytes += $1 } END { print int(bytes / 1024) + 1 }')
    mkdir "$folder/DEBIAN"
    (cd "$folder" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$folder/DEBIAN/md5sums"
    printf 'Package: %s\nSource: kmes\nVersion: %s\nArchitecture: %s\nMaintainer: %s\n' \
        "$package" "$VERSION" "$architecture" "$MAINTAINER" >"$folder/DEBIAN/control"
    printf 'Installed-Size: %s\n%s\n' "$size" "$fields" >>"$folder/DEBIAN/control"
    [ ! -d "$folder.control" ] || cp "$folder.control"/* "$folder/DEBIAN/"
    # cp does not keep modes, and a file in a sandbox may have any.
    find "$folder" -type d -exec chmod 755 {} +
    find "$folder" -type f ! -path "$folder/usr/bin/*" -exec chmod 644 {} +
    # An example that is no binary runs as it is.
    find "$folder/usr/share/doc" -path '*/examples/*.py' -type f -exec chmod 755 {} +
    find "$folder/DEBIAN" -type f \( -name 'p*inst' -o -name 'p*rm' \) -exec chmod 755 {} +
    find "$folder" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
    file=$OUTPUT/${package}_${VERSION}_$architecture.deb
    # The bytes of xz depend on the number of its threads.
    dpkg-deb --root-owner-group -Zxz --threads-max=1 --build "$folder" "$file" >/dev/null
    touch -d "@$SOURCE_DATE_EPOCH" "$file"
}
