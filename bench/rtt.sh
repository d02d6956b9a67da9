# shellcheck shell=bash disable=SC2154  # median, mean, p99 and p999 come from the tool's function
# Round trip of one message, one outstanding.

# Each rtt_TOOL TRANSPORT FAMILY SIZE sets median, mean, p99 and p999 in microseconds, `-` for what it does not tell.
rtt_stacklab() { ours echo "$2" "$3" "--$1" && ours_rtt; }
rtt_stacklab-poll() { ours echo "$2" "$3" "--$1" --poll 1000000 && ours_rtt; }

rtt_sockperf() { sockperf_run 11111 "$@"; }
rtt_sockperf-poll() { sockperf_run 11113 "$@" --nonblocked; }

# sockperf_run PORT TRANSPORT FAMILY SIZE OPTION..: its summary prints the round trip itself (--full-rtt).
sockperf_run() {
    local port=$1 tcp=()
    [ "$2" = tcp ] && tcp=(--tcp) && port=$((port + 1))
    in_sender sockperf ping-pong "${tcp[@]}" -i "$(address "$3")" -p "$port" -m "$4" -t 1 --full-rtt "${@:5}" \
        >"$work/sockperf.txt" || return 1
    read -r median mean p99 p999 < <(awk '/Round trip is/ { mean = $(NF - 1) } /percentile 50\.000/ { p50 = $NF }
        /percentile 99\.000/ { p99 = $NF } /percentile 99\.900/ { p999 = $NF } END { print p50, mean, p99, p999 }' \
        "$work/sockperf.txt")
    [ -n "$p999" ]
}

# qperf prints half of a mean round trip, in nanoseconds with -uu.
rtt_qperf() {
    in_sender qperf -t 1 -m "$3" -e 6 -uu "$(address "$2")" "${1}_lat" >"$work/qperf.txt" || return 1
    median=- p99=- p999=- mean=$(awk '/latency/ { printf "%.3f", 2 * $3 / 1000 }' "$work/qperf.txt")
    [ -n "$mean" ]
}

# Before 3.8 sockperf speaks IPv4 only.
sockperf_speaks() {
    [ "$1" = ipv4 ] || ! timeout 1 sockperf server -i ::1 2>&1 | grep -q 'Invalid address'
}

rtt_servers() {
    local family=$1 tool=$2 way tcp
    ours_server
    server qperf qperf
    # Servers of sockperf belong to one address, and one that polls takes the whole processor: only while it is used.
    for way in udp tcp; do
        tcp=()
        [ $way = tcp ] && tcp=(--tcp)
        case $tool in
            sockperf) server "sockperf-$way" sockperf server "${tcp[@]}" -i "$(address "$family")" -p \
                $((11111 + ${#tcp[@]})) ;;
            sockperf-poll) server "sockperf-poll-$way" sockperf server "${tcp[@]}" -i "$(address "$family")" -p \
                $((11113 + ${#tcp[@]})) --nonblocked ;;
        esac
    done
}

rtt_rows() {
    local offload transport family size round tool tools
    echo offloads transport family size round tool median p99 p999 mean
    for offload in "${all_offloads[@]}"; do
        offloads "$offload"
        for transport in udp tcp; do
            for family in "${all_families[@]}"; do
                tools=(stacklab qperf stacklab-poll)
                ! sockperf_speaks "$family" || tools=(stacklab sockperf qperf stacklab-poll sockperf-poll)
                for size in "${all_sizes[@]}"; do
                    for ((round = 1; round <= pairs; round++)); do
                        say "rtt: offloads $offload, $transport over $family, $size bytes, round $round of $pairs"
                        for tool in $(turns "$round" "${tools[@]}"); do
                            rtt_servers "$family" "$tool"
                            printf '%s %s %s %s %s %s ' "$offload" "$transport" "$family" "$size" "$round" "$tool"
                            if attempt "rtt_$tool" "$transport" "$family" "$size"; then
                                echo "$median $p99 $p999 $mean"
                            else
                                echo failed failed failed failed
                            fi
                            stop sockperf-poll-udp
                            stop sockperf-poll-tcp
                        done
                    done
                done
                stop sockperf-udp
                stop sockperf-tcp
            done
        done
    done
}

rtt_about() {
    cat <<'END'
Round trip of one message, one outstanding, for one second, in microseconds. stacklab and sockperf sleep in the receive call,
as qperf does; stacklab-poll and sockperf-poll (--nonblocked) poll at both ends. qperf tells the mean only (half of a round
trip, doubled here). A sockperf that speaks no IPv6 has no rows there, and the targets, which are sockperf's figures, are
then judged for IPv4.
END
}

rtt_claims() {
    cat <<'END'
median|low|stacklab|sockperf|1||median round trip, sleeping
p99|low|stacklab|sockperf|1||99th percentile, sleeping
median|low|stacklab-poll|sockperf-poll|1||median round trip, polling
p99|low|stacklab-poll|sockperf-poll|1||99th percentile, polling
p999|low|stacklab|sockperf|||99.9th percentile, sleeping
p999|low|stacklab-poll|sockperf-poll|||99.9th percentile, polling
mean|low|stacklab|qperf|||mean round trip, sleeping
END
}
