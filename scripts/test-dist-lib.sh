# shellcheck shell=bash
# What the parts of scripts/test-dist share: checks, and roots of Debian to run them in. They use its variables.

# check WHAT COMMAND..: runs it, with signs of life, and prints its output if it fails.
check() {
    local what=$1 status=0
    shift
    start_signs
    "$@" </dev/null >"$work/output" 2>&1 || status=$?
    stop_signs
    if [ "$status" -eq 0 ]; then
        passed=$((passed + 1))
        echo "ok      $what"
    else
        failed=$((failed + 1))
        echo "FAILED  $what"
        tail -n 60 "$work/output" | sed 's/^/        /'
    fi
}

# make_minimal_root SUITE FOLDER [PACKAGE..]: a minimal Debian. It is thrown away, and needs no safe writes, which are slow on some disks.
make_minimal_root() {
    local suite=$1 folder=$2
    shift 2
    begin "a new root of $suite${1:+ with $*}" '1 min'
    with_signs mmdebstrap --quiet --variant=minbase --dpkgopt=force-unsafe-io ${1:+--include="$(IFS=, && echo "$*")"} "$suite" "$folder" "$mirror" ||
        die "mmdebstrap cannot make a root of $suite (its reason is above)"
}

# says TEXT COMMAND..: whether the output has this text, whatever the exit code.
says() {
    local text=$1
    shift
    "$@" >"$work/said" 2>&1 || true
    grep -qF -- "$text" "$work/said" || { cat "$work/said"; return 1; }
}
lacks() { ! grep -rqaF -- "$1" "$2" || { echo "$2 contains $1"; return 1; }; }
same() { diff "$1" "$2"; }

# contains PACKAGE PATH MACHINE NAME..: whether a package of any kind has the program of the archive at a path, and files of these
# names.
contains() {
    local unpacked=$work/unpacked
    rm -rf "$unpacked"
    mkdir "$unpacked"
    case $1 in
    *.deb) dpkg-deb -x "$1" "$unpacked" ;;
    *) bsdtar -xf "$1" -C "$unpacked" ;;
    esac
    cmp "$unpacked/$2" "$work/$3/stacklab" || return 1
    [ -x "$unpacked/$2" ] || { echo "$2 is not executable"; return 1; }
    for name in "${@:4}"; do [ -n "$(find "$unpacked" -name "$name*")" ] || { echo "$name is missing"; return 1; }; done
}

# layer_of ARCHITECTURE: the only layer of the image, as its index leads to it.
layer_of() {
    local index manifest
    blob() { tar -xOf "$dist/stacklab-$version-image.tar" "blobs/${1/://}"; }
    index=$(tar -xOf "$dist/stacklab-$version-image.tar" index.json | jq -r '.manifests[0].digest')
    manifest=$(blob "$index" | jq -r --arg architecture "$1" '.manifests[] | select(.platform.architecture == $architecture) | .digest')
    blob "$(blob "$manifest" | jq -r '.layers[0].digest')"
}

# leads_to_program MACHINE: whether what Cargo.toml says to cargo-binstall names an archive of this release, and the program in it.
leads_to_program() {
    local address path
    address=$(resolve '.metadata.binstall["pkg-url"]' "$1")
    path=$(resolve '.metadata.binstall["bin-dir"]' "$1")
    echo "$address, $path"
    [[ $address == "$(project repository)/releases/download/v$version/"* ]] || return 1
    tar -xOf "$dist/${address##*/}" "$path" | cmp - "$work/$1/stacklab"
}

# resolve KEY MACHINE: a template of Cargo.toml with its fields replaced as cargo-binstall would.
resolve() {
    local text
    text=$(cargo metadata --format-version 1 --locked --no-deps --offline | jq -r ".packages[] | select(.name == \"stacklab\") | $1" |
        sed "s|{ repo }|$(project repository)|g; s|{ version }|$version|g; s|{ target-arch }|$2|g; s/{ name }\|{ bin }/stacklab/g; s|{ binary-ext }||g")
    [[ $text != *[{}]* ]] || { echo "not replaced: $text" >&2; return 1; }
    echo "$text"
}

# inside ROOT COMMAND..: in a root folder with its own processes and network, as root. Not by chroot alone: processes in a
# chroot may not create user namespaces.
inside() {
    # shellcheck disable=SC2016
    unshare --fork --kill-child --pid --mount --net --ipc --uts sh -ec '
        root=$1
        shift
        ip link set lo up
        mount --bind "$root" "$root"
        cd "$root"
        mount -t proc proc proc
        mount --rbind /sys sys
        mount --rbind /dev dev
        mount -t tmpfs -o mode=1777 tmpfs tmp
        pivot_root . mnt
        exec chroot . sh -c "umount -l /mnt; cd /tmp; exec \"\$@\"" sh "$@"' sh "$@"
}
as_user=(setpriv --reuid 1000 --regid 1000 --clear-groups env HOME=/tmp)
install_deb() { cp "$dist/stacklab_${version}_amd64.deb" "$1/stacklab.deb" && inside "$1" dpkg -i /stacklab.deb; rm "$1/stacklab.deb"; }

# files ROOT: all files with type, rights and owner, but logs and what dpkg and podman keep for themselves.
files() { (cd "$1" && find . -xdev -printf '%p %y %m %u %g\n') | grep -Ev '^\./(var/(log|cache|tmp)|var/lib/(dpkg/(status-old|triggers|lock)|containers)|home/person/\.local/(pipx/logs|share/containers)|tmp|proc|sys|dev|run)[ /]' | sort; }
packages() { inside "$1" dpkg-query -W -f '${Package}\n'; }
