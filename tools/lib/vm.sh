# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# `tools/kmes vm`: the kernel module in a virtual machine (docs/vm.md). Finds or builds the kernel,
# the modules and the guest's programs. kmod/vm/vm.py packs them, boots, and prints the results.

readonly VM_KERNELS='6.1 6.12 kasan kcsan'

vm_usage() {
    cat <<TEXT
usage: tools/kmes vm [OPTIONS...] [-- COMMAND [ARGUMENTS...]]

Boots a virtual machine, runs the guest tests in it, and prints one line for each test.
With COMMAND: loads the test build of the module, and runs only COMMAND, with its output and its
exit status. COMMAND is a program of the guest (busybox has the usual ones), or the path of a
program on this machine, which is copied into the guest with its libraries.
A run fails if the kernel's log has a report of an error.

  --kernel K       6.1 or 6.12 (Debian's), kasan or kcsan (built once from Debian's source).
                   Default: 6.1
  --test GLOB      run the guest tests whose names match, instead of the default ones; may be
                   repeated. '!GLOB' excludes tests
  --list           list the guest tests: name, when it runs, kernels
  --planted        boot once for each planted bug of that kernel that --test matches, and fail if
                   one is not reported
  --verbose, -v    print the output of passed guest tests, too
  --no-module      do not load the module
  --production     load the module without the test ioctls
  --pack PATH      copy a file or a folder to /kmes/bin of the guest; may be repeated
  --seconds N      time limit of COMMAND; KMES_TIMEOUT_SCALE multiplies it. Default: 120
  --memory MB      memory of the machine. Default: 1024, for kasan 2560
  --cpus N         processors of the machine. Default: 2
  --machines N     run the guest tests in N machines at once. Default: 1
  --log FILE       write the kernel's log to FILE

Exit status: 0 all passed, or that of COMMAND; 1 a test failed, the kernel reported an error, or
COMMAND did not end; 2 bad usage; 3 set-up or build failed.
TEXT
}

# Prints the cache folder of kernels and modules. Each new entry gets its name by a rename, so
# concurrent runs need no lock.
vm_cache() {
    local cache
    if ! cache=$(cache_folder); then
        say_error "vm: this user can write to no cache folder, so kernels cannot be kept"
        return "$STATUS_SETUP"
    fi
    printf '%s\n' "$cache/vm"
}

# vm_headers KERNEL: prints the folder of the newest installed headers of Debian for that kernel.
vm_headers() {
    local found
    found=$(printf '%s\n' /usr/src/linux-headers-"$1".*-cloud-amd64 | sort -V | tail -n 1)
    if [ ! -d "$found" ]; then
        say_error "vm: no headers of Debian's cloud kernel $1 in /usr/src;" \
            "tools/kmes setup kernel installs them"
        return "$STATUS_SETUP"
    fi
    printf '%s\n' "$found"
}

# vm_debian_image KERNEL: prints the path of Debian's kernel image of the same version as the
# headers. Downloads the image without installing it, so it needs no root.
vm_debian_image() {
    local headers release version cache folder part
    headers=$(vm_headers "$1") && cache=$(vm_cache) || return
    release=${headers##*/linux-headers-}
    version=$(dpkg-query -W -f='${Version}' "linux-headers-$release") || return "$STATUS_SETUP"
    folder=$cache/image-$release-$version
    if [ ! -e "$folder/vmlinuz" ]; then
        make_scratch && mkdir -p "$cache" && part=$(mktemp -d "$cache/part.XXXXXXXX") || return
        if ! vm_fetch "$part" "linux-image-$release=$version" >"$KMES_SCRATCH/apt.log" 2>&1; then
            cat -- "$KMES_SCRATCH/apt.log" >&2
            rm -rf -- "$part"
            say_error "vm: linux-image-$release $version could not be fetched; if the archive has" \
                "a newer version, update the headers"
            return "$STATUS_SETUP"
        fi
        mv -T -- "$part" "$folder" 2>/dev/null || rm -rf -- "$part"
    fi
    printf '%s\n' "$folder/vmlinuz"
}

# vm_fetch FOLDER PACKAGE=VERSION: downloads the kernel of that package to FOLDER/vmlinuz.
vm_fetch() (
    cd -- "$1" || exit
    # apt may fetch as another user.
    chmod 755 .
    apt-get download "$2" || { [ "$(id -u)" -eq 0 ] && apt-get update && apt-get download "$2"; } ||
        exit
    dpkg -x ./*.deb unpacked && mv unpacked/boot/vmlinuz-* vmlinuz && rm -rf ./*.deb unpacked
)

# vm_kernel KERNEL: sets VM_IMAGE (the file to boot), VM_BUILD (the folder that modules are built
# with) and VM_OPTIONS (of vm.py).
vm_kernel() {
    local cache
    case "$1" in
        6.*)
            VM_BUILD=$(vm_headers "$1") && VM_IMAGE=$(vm_debian_image "$1") || return
            VM_OPTIONS=(--acpi)
            ;;
        *)
            cache=$(vm_cache) || return
            VM_BUILD=$("$KMES_ROOT/kmod/vm/build_kernel.sh" "$cache" \
                "$KMES_ROOT/kmod/vm/configs/base.config" \
                "$KMES_ROOT/kmod/vm/configs/$1.config") || return "$STATUS_SETUP"
            VM_IMAGE=$VM_BUILD/arch/x86/boot/bzImage
            VM_OPTIONS=()
            ;;
    esac
}

# vm_modules: builds the modules for the kernel of vm_kernel. Sets VM_MODULES to their folder.
vm_modules() {
    local cache
    cache=$(vm_cache) || return
    VM_MODULES=$("$KMES_ROOT/kmod/vm/build_modules.sh" "$KMES_ROOT" "$VM_BUILD" "$cache") ||
        return "$STATUS_SETUP"
}

# vm_programs KERNEL OPTIONS...: builds the Bazel targets that the chosen guest tests need. Sets
# BAZEL_BIN.
vm_programs() {
    local kernel=$1 labels
    shift
    labels=$(python3 -B "$KMES_ROOT/kmod/vm/vm.py" labels --kernel "$kernel" "$@") || return
    BAZEL_BIN=
    # shellcheck disable=SC2086  # labels have no spaces
    [ -z "$labels" ] || build_targets "the guest's programs" $labels
}

# vm_value OPTION VALUE: checks the value of an option.
vm_value() {
    case "$1" in
        --kernel)
            case " $VM_KERNELS " in
                *" $2 "*) ;;
                *) bad_usage "vm: unknown kernel '$2'; one of: $VM_KERNELS" ;;
            esac
            ;;
        --pack) [ -e "$2" ] || bad_usage "vm: '$2' cannot be read" ;;
        --seconds | --memory | --cpus | --machines)
            [[ $2 =~ ^[1-9][0-9]{0,5}$ ]] || bad_usage "vm: $1 takes a whole number, not '$2'"
            ;;
    esac
}

vm_command() {
    local kernel=6.1 options=() tests=() with_module=1 what=suite machines=''
    while [ $# -gt 0 ]; do
        case "$1" in
            --help | -h) vm_usage && return ;;
            --list) python3 -B "$KMES_ROOT/kmod/vm/vm.py" list && return ;;
            --kernel | --test | --pack | --seconds | --memory | --cpus | --machines | --log)
                [ $# -ge 2 ] || { bad_usage "vm: $1 takes a value" || return; }
                vm_value "$1" "$2" || return
                case "$1" in
                    --kernel) kernel=$2 ;;
                    --test) tests+=("--test=$2") ;;
                    --machines) machines=$2 ;;
                    *) options+=("$1=$2") ;;
                esac
                shift 2
                ;;
            --planted) what=planted && shift ;;
            --no-module) with_module=0 && shift ;;
            --production | --verbose | -v) options+=("$1") && shift ;;
            --) what=command && break ;;
            *) bad_usage "vm: unknown option '$1'; tools/kmes vm --help lists them" || return ;;
        esac
    done
    if [ "$what" = command ] && [ $# -lt 2 ]; then
        bad_usage "vm: a command is missing after --" || return
    fi
    if [ -n "$machines" ]; then
        [ "$what" = suite ] || bad_usage "vm: --machines is only for the guest tests" || return
        options+=("--machines=$machines")
    fi
    setup_section kernel && vm_kernel "$kernel" || return
    if [ "$with_module" -eq 1 ]; then
        vm_modules || return
        options+=(--modules "$VM_MODULES")
    fi
    if [ "$what" = suite ]; then
        vm_programs "$kernel" ${tests[@]+"${tests[@]}"} || return
        options+=(--binaries "$BAZEL_BIN")
    fi
    python3 -B "$KMES_ROOT/kmod/vm/vm.py" "$what" --kernel "$kernel" --image "$VM_IMAGE" \
        ${VM_OPTIONS[@]+"${VM_OPTIONS[@]}"} ${options[@]+"${options[@]}"} \
        ${tests[@]+"${tests[@]}"} "$@"
}
