# shellcheck shell=bash
# What the scripts of this folder share: messages, and steps with their usual time.

script=$(basename "$0")
say() { printf '%s: %s\n' "$script" "$*" >&2; }
die() { say "$*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# project KEY: version, license, repository, maintainer or description of the project, as Cargo.toml has them.
project() {
    case $1 in
    maintainer) sed -n 's/^authors = \["\(.*\)"\]$/\1/p' Cargo.toml ;;
    description) sed -n 's/^description = "\(.*\)"$/\1/p' crates/stacklab/Cargo.toml ;;
    *) sed -n "/^\[workspace.package\]/,/^\[/s/^$1 = \"\(.*\)\"$/\1/p" Cargo.toml ;;
    esac
}

# begin WHAT USUALLY: says what begins and how long it usually takes on two CPUs.
begin() { printf '== %s (usually %s)\n' "$1" "$2" >&2; }

# step WHAT USUALLY COMMAND..: the same, runs it, and says how long it took.
step() {
    local what=$1 began=$SECONDS
    begin "$1" "$2"
    shift 2
    "$@" || die "failed after $((SECONDS - began)) s: $what"
    printf '== took %d s: %s\n' $((SECONDS - began)) "$what" >&2
}

# start_signs: a sign of life on standard error every four seconds, until stop_signs or the end of this script. Ended by a pipe: a
# process that is killed as it starts would still run this script's trap at exit.
start_signs() {
    local began=$SECONDS
    exec {signs}> >(until read -r -t 4; do
        [ $? -gt 128 ] || break
        say "still at it after $((SECONDS - began)) s"
    done)
}
stop_signs() {
    echo end >&"$signs"
    exec {signs}>&-
}

# with_signs COMMAND..: runs it, with signs of life, for commands that print nothing. A function goes on after a failure within it.
with_signs() {
    local status=0
    start_signs
    "$@" || status=$?
    stop_signs
    return "$status"
}

# choose_sqlite: cargo's options into `sqlite`: nothing where the headers of the system's SQLite are installed, which takes apt
# seconds; elsewhere SQLite is compiled, which takes a minute.
choose_sqlite() {
    sqlite=()
    pkg-config --exists 'sqlite3 >= 3.37' 2>/dev/null || sqlite=(--features bundled-sqlite)
}

has_source() { [ -e "$("$1" --print sysroot 2>/dev/null)/lib/rustlib/src/rust/library/Cargo.toml" ]; }

# use_std_source FOR: chooses a compiler with the standard library's source, which can build that library for any system: the
# current toolchain, else Debian's packages. `scripts/setup FOR` installs one.
use_std_source() {
    if has_source rustc; then
        :
    elif [ -x /usr/bin/cargo ] && has_source /usr/bin/rustc; then
        export PATH="/usr/bin:$PATH"
        # Whoever called may have chosen another compiler.
        unset RUSTUP_TOOLCHAIN RUSTC CARGO
    else
        die "the source of the standard library is missing: run scripts/setup $1"
    fi
    # Building the standard library is not stable.
    export RUSTC_BOOTSTRAP=1
}

# debian_mirror: the archive of Debian that apt of this machine uses. DEBIAN_MIRROR names another, where apt uses none.
debian_mirror() {
    local mirror=${DEBIAN_MIRROR:-}
    if [ -z "$mirror" ] && have apt-get; then
        # apt reads its own configuration, and knows the origin of an archive once it has its lists.
        # shellcheck disable=SC2016
        mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN)' 'Created-By: Packages' |
            awk '$2 !~ /-/ && $3 == "main" && $4 == "Debian" { print $1; exit }')
    fi
    mirror=${mirror%/}
    # Images for clouds have a file with mirrors instead.
    [[ $mirror != mirror+file:* ]] || mirror=$(awk '!/^#/ && NF { print $1; exit }' "${mirror#mirror+file:}")
    [ -n "$mirror" ] || die "apt of this machine uses no archive of Debian: run apt-get update, or set DEBIAN_MIRROR"
    echo "${mirror%/}"
}
