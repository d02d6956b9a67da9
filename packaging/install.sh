#!/bin/sh
# Installs stacklab @VERSION@: downloads the archive for this machine, compares its checksum, and unpacks it.
#
#   sh install.sh [--prefix FOLDER] [--base ADDRESS]   into FOLDER, else /usr/local for root and ~/.local for others
#   sh install.sh --uninstall [--prefix FOLDER]        removes all that it installed there
#
# ADDRESS is where the archives and SHA256SUMS are: https://, http:// or file://.
set -eu
version=@VERSION@
base=@REPOSITORY@/releases/download/v$version
if [ "$(id -u)" -eq 0 ]; then prefix=/usr/local; else prefix=$HOME/.local; fi
action=install

die() {
    echo "install.sh: $*" >&2
    exit 1
}

while [ $# -gt 0 ]; do
    case $1 in
    --prefix | --base) [ $# -ge 2 ] || die "$1 needs a value" ;;
    esac
    case $1 in
    --prefix) prefix=$2 && shift ;;
    --base) base=${2%/} && shift ;;
    --uninstall) action=uninstall ;;
    *) die "unknown option $1: [--prefix FOLDER] [--base ADDRESS] [--uninstall]" ;;
    esac
    shift
done
case $prefix in
/*) ;;
*) prefix=$(pwd)/$prefix ;;
esac
# Lists all that was installed, the newest first: files, and folders that were not there.
list=share/stacklab/installed

# remove LIST: what it lists below the prefix.
remove() {
    # Read as a whole, for it lists itself.
    entries=$(cat "$1")
    echo "$entries" | while IFS= read -r entry; do
        if [ -d "$prefix/$entry" ]; then
            # Others may have put files there since.
            rmdir "$prefix/$entry" 2>/dev/null || true
        else
            rm -f "$prefix/$entry"
        fi
    done
}

# clean_up: the working folder, and what was placed before an error.
clean_up() {
    [ -z "$unfinished" ] || remove "$work/list"
    rm -rf "$work"
}

# fetch NAME: a file of the release into the working folder.
fetch() {
    case $base in
    file://*) cp "${base#file://}/$1" "$work/$1" ;;
    *)
        if command -v curl >/dev/null; then
            curl --fail --silent --show-error --location --output "$work/$1" "$base/$1"
        elif command -v wget >/dev/null; then
            wget -q -O "$work/$1" "$base/$1"
        else
            die "neither curl nor wget is here: install one of them"
        fi
        ;;
    esac || die "cannot download $base/$1"
}

# note ENTRY: adds a file or a folder to the list.
note() { printf '%s\n' "$1" | cat - "$work/list" >"$work/longer" && mv "$work/longer" "$work/list"; }

# make_folders PATH: the folders that lead to a file below the prefix.
make_folders() {
    case $1 in
    */*) ;;
    *) return 0 ;;
    esac
    if [ ! -d "$prefix/${1%/*}" ]; then
        make_folders "${1%/*}"
        mkdir "$prefix/${1%/*}"
        note "${1%/*}"
    fi
}

# place MODE FILE TO: a file of the archive below the prefix. By rename, so that a program which runs keeps its file.
place() {
    make_folders "$3"
    note "$3"
    cp "$2" "$prefix/$3.new"
    chmod "$1" "$prefix/$3.new"
    mv -f "$prefix/$3.new" "$prefix/$3"
}

install_release() {
    case $(uname -s)-$(uname -m) in
    Linux-x86_64) machine=x86_64 ;;
    Linux-aarch64 | Linux-arm64) machine=aarch64 ;;
    *) die "there is no archive for $(uname -s) on $(uname -m)" ;;
    esac
    name=stacklab-$version-$machine-linux
    fetch SHA256SUMS
    fetch "$name.tar.gz"
    grep "  $name.tar.gz\$" "$work/SHA256SUMS" >"$work/expected" || die "SHA256SUMS lacks $name.tar.gz"
    (cd "$work" && sha256sum -c expected >/dev/null 2>&1) || die "$name.tar.gz is not the file that SHA256SUMS lists: nothing was installed"
    (cd "$work" && gzip -dc "$name.tar.gz" | tar xf -) || die "cannot unpack $name.tar.gz"
    # An earlier version may have had other files.
    [ ! -f "$prefix/$list" ] || remove "$prefix/$list"
    umask 022
    : >"$work/list"
    unfinished=yes
    if [ ! -d "$prefix" ]; then
        mkdir -p "$prefix"
        note "../$(basename "$prefix")"
    fi
    cd "$work/$name"
    place 755 stacklab bin/stacklab
    for page in man/*.1; do place 644 "$page" "share/man/man1/${page#man/}"; done
    place 644 completions/stacklab.bash share/bash-completion/completions/stacklab
    place 644 completions/_stacklab share/zsh/site-functions/_stacklab
    place 644 completions/stacklab.fish share/fish/vendor_completions.d/stacklab.fish
    for file in LICENSE-APACHE LICENSE-MIT THIRD-PARTY.txt README.md CHANGELOG.md install.md agents.md sbom.cdx.json; do place 644 "$file" "share/doc/stacklab/$file"; done
    for study in studies/*.toml; do place 644 "$study" "share/doc/stacklab/examples/${study#studies/}"; done
    make_folders "$list"
    note "$list"
    cp "$work/list" "$prefix/$list"
    unfinished=
    echo "installed $prefix/bin/stacklab; remove it by: sh install.sh --uninstall --prefix $prefix"
    case :$PATH: in
    *:"$prefix/bin":*) ;;
    *) echo "$prefix/bin is not in PATH: add it, or start $prefix/bin/stacklab" ;;
    esac
}

if [ "$action" = uninstall ]; then
    [ -f "$prefix/$list" ] || die "there is no $prefix/$list: this script has installed nothing there"
    remove "$prefix/$list"
    echo "removed stacklab from $prefix"
else
    unfinished=
    work=$(mktemp -d)
    trap clean_up EXIT
    install_release
fi
