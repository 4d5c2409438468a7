# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Installs the packages of tools/packages.txt with apt.

readonly SETUP_SECTIONS='suite required package browser testees kernel peers optional'

# packages_of SECTION: prints the names in one section of tools/packages.txt. `required` has the
# packages to build and test the tree, so it includes the section `suite`. Names a malformed line,
# with status 3.
packages_of() {
    awk -v wanted="$1" -v file="tools/packages.txt" '
        function refuse(what) {
            print "tools/kmes: " file ":" NR ": " what > "/dev/stderr"
            bad = 1
            exit 3
        }
        /^[[:space:]]*(#|$)/ { next }
        /^\[/ {
            if ($0 !~ /^\[[a-z]+\]$/) refuse("a section is written [name]")
            section = substr($0, 2, length($0) - 2); seen[section] = 1; next
        }
        section == "" { refuse("a package before the first [section]") }
        $1 !~ /^[a-z0-9][a-z0-9+.-]+$/ { refuse("\"" $1 "\" is no package name") }
        NF < 2 { refuse("a package needs a reason behind its name: " $1) }
        section == wanted || (section == "suite" && wanted == "required") { print $1 }
        END {
            if (!bad && !(wanted in seen)) refuse("no section [" wanted "]")
            exit bad ? 3 : 0
        }' "$KMES_ROOT/tools/packages.txt"
}

# missing_packages NAME...: prints the packages that are not installed, one per line.
missing_packages() {
    dpkg-query -W -f='${Package} ${db:Status-Status}\n' -- "$@" 2>/dev/null |
        awk -v names="$*" '
            $2 == "installed" { have[$1] = 1 }
            END {
                count = split(names, wanted, " ")
                for (i = 1; i <= count; i++) if (!(wanted[i] in have)) print wanted[i]
            }'
}

# Installs packages. If that fails, fetches the package lists, which may be old, and tries again.
apt_install() {
    local options=(-y --no-install-recommends -o DPkg::Lock::Timeout=300)
    export DEBIAN_FRONTEND=noninteractive
    apt-get install "${options[@]}" "$@" </dev/null && return
    apt-get update </dev/null && apt-get install "${options[@]}" "$@" </dev/null
}

# missing_of SECTION: prints the packages of the section that are not installed, in one line. The
# status is not 0 if dpkg cannot be asked.
missing_of() {
    local names missing
    names=$(packages_of "$1") && command -v dpkg-query >/dev/null || return
    # shellcheck disable=SC2086  # names of packages have no spaces
    missing=$(missing_packages $names | tr '\n' ' ')
    printf '%s' "${missing% }"
}

# setup_section SECTION: installs its missing packages. Status 0: success.
setup_section() {
    local section=$1 missing
    packages_of "$section" >/dev/null || return "$STATUS_SETUP"
    if ! command -v dpkg-query >/dev/null; then
        say_error "this is no Debian: install what tools/packages.txt lists by other means"
        command -v bazel >/dev/null && return 0
        return "$STATUS_SETUP"
    fi
    missing=$(missing_of "$section")
    [ -z "$missing" ] && return 0
    if [ "$(id -u)" -ne 0 ]; then
        say_error "packages are missing; as root: apt-get install --no-install-recommends $missing"
        return "$STATUS_SETUP"
    fi
    printf 'tools/kmes: installing %s\n' "$missing" >&2
    make_scratch || return
    # shellcheck disable=SC2086
    if ! apt_install $missing >"$KMES_SCRATCH/apt.log" 2>&1; then
        tail -n 20 -- "$KMES_SCRATCH/apt.log" >&2
        say_error "apt could not install [$section] of tools/packages.txt: $missing"
        return "$STATUS_SETUP"
    fi
}

setup_command() {
    local section status=0
    for section in "$@"; do
        case " $SETUP_SECTIONS " in
            *" $section "*) ;;
            *)
                bad_usage "setup: unknown section '$section'; one of: $SETUP_SECTIONS"
                return
                ;;
        esac
    done
    for section in "${@:-required}"; do
        setup_section "$section" || status=$STATUS_SETUP
    done
    return "$status"
}
