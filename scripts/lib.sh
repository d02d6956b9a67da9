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
