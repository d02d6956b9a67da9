# shellcheck shell=bash disable=SC2034,SC2154  # the parts read these variables
# stacklab as one tool: an agent that listens at the receiver, single measurements from the sender.

# Known to both ends, and to nobody who could reach them.
STACKLAB_KEY=$(head -c 16 /dev/urandom | base64)
export STACKLAB_KEY

ours_server() { server stacklab "$stacklab" agent --listen :5202; }

# ours tcp|udp|echo FAMILY SIZE OPTION..: one measurement of a second, unless an option says how long or how many.
ours() {
    local time=(-t 1)
    [[ " ${*:4} " =~ ' -t '|' -n ' ]] && time=()
    in_sender "$stacklab" measure "$1" "$(address "$2")" -l "$3" "${time[@]}" --json "${@:4}" >"$work/stacklab.json"
}

# ours_received: the receiver's counts of a stream.
ours_received() {
    read -r received bytes seconds < <(jq -r '.ends[1].received | "\(.measured) \(.bytes) \((.last_ns - .first_ns) / 1e9)"' \
        "$work/stacklab.json")
}

# ours_rtt: percentiles of an echo, in microseconds.
ours_rtt() {
    read -r median p99 p999 mean < <(jq -r '[.values | .rtt, .rtt_p99, .rtt_p999, .rtt_mean | .measured * 1000] | map(tostring) | join(" ")' \
        "$work/stacklab.json")
    [ -n "$mean" ]
}
