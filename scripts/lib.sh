# shellcheck shell=bash
# What the scripts of this folder share: messages, and steps with their usual time.

name=$(basename "$0")
say() { printf '%s: %s\n' "$name" "$*" >&2; }
die() { say "$*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# begin WHAT USUALLY: says what begins and how long it usually takes on two CPUs.
begin() { printf '== %s (usually %s)\n' "$1" "$2" >&2; }

# step WHAT USUALLY COMMAND..: the same, and runs it.
step() {
    local what=$1 began=$SECONDS
    begin "$1" "$2"
    shift 2
    "$@" || die "failed after $((SECONDS - began)) s: $what"
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
