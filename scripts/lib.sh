# shellcheck shell=bash
# What the scripts of this folder share: messages, and steps with their usual time.

name=$(basename "$0")
say() { printf '%s: %s\n' "$name" "$*" >&2; }
die() { say "$*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# step WHAT USUALLY COMMAND..: says what begins and how long it usually takes on two CPUs, and runs it.
step() {
    local what=$1 usually=$2 began=$SECONDS
    shift 2
    printf '== %s (usually %s)\n' "$what" "$usually" >&2
    "$@" || die "failed after $((SECONDS - began)) s: $what"
}
