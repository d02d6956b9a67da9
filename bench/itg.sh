# shellcheck shell=bash disable=SC2034  # the parts read these variables
# D-ITG as one tool: its receiver's log is the only place where it counts what arrived.

# itg FAMILY OPTION..: one flow of a second; received, bytes and seconds are then what the receiver's log says.
itg() {
    local to
    to=$(address "$1")
    shift
    rm -f "$work/itg.log"
    in_sender ITGSend -a "$to" -l /dev/null -x "$work/itg.log" "$@" >"$work/itg.out" 2>&1
}

# itg_count: reads the log. ITGDec draws a progress wheel, so its output goes to a file first.
itg_count() {
    ITGDec "$work/itg.log" >"$work/itg.txt" 2>&1 || return 1
    received=$(awk -F= '/Total packets/ { print $2 + 0; exit }' "$work/itg.txt")
    bytes=$(awk -F= '/Bytes received/ { print $2 + 0; exit }' "$work/itg.txt")
    seconds=$(awk -F= '/Total time/ { print $2 + 0; exit }' "$work/itg.txt")
    [ -n "$received" ] && [ -n "$bytes" ] && [ -n "$seconds" ]
}
