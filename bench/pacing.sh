# shellcheck shell=bash
# Packets on a schedule: the mean rate and the gaps, as the kernel captured them at the receiver's interface.

pacing_size=128

# Each pacing_TOOL FAMILY RATE SECONDS sends at that rate.
pacing_stacklab() { ours udp "$1" $pacing_size --pps "$2" -t "$3"; }

# Its finest timer; by default it would send a burst each millisecond.
pacing_iperf3() {
    in_sender iperf3 -c "$(address "$1")" -u -b $(($2 * pacing_size * 8)) --pacing-timer 1 -l $pacing_size -t "$3" \
        >"$work/iperf3.txt"
}

# With -poll it does not sleep through gaps below a millisecond.
pacing_d-itg() { itg "$1" -T UDP -c $pacing_size -C "$2" -t $(($3 * 1000)) -poll; }

# last_below PROCESS: the process at the end of its line of children: what nsenter and its shell started.
last_below() {
    local process=$1 child
    while child=$(cat "/proc/$process/task/$process/children") && [ -n "$child" ]; do process=${child%% *}; done
    echo "$process"
}

# captured COMMAND..: runs it while tcpdump writes what reaches the receiver's interface, into $work/capture.
captured() {
    local dump status=0
    in_receiver tcpdump -i v0 --direction=in -s 64 -B 65536 --time-stamp-precision=nano -w "$work/capture" udp \
        >/dev/null 2>"$work/tcpdump.err" &
    dump=$!
    until grep -q listening "$work/tcpdump.err"; do sleep 0.05; done
    "$@" || status=$?
    # The kernel hands a block of packets over at the latest a second after its first.
    sleep 1.2
    kill -INT "$(last_below "$dump")"
    wait "$dump" || true
    grep -q '^0 packets dropped by kernel' "$work/tcpdump.err" || { echo "the capture lost packets" >&2; return 1; }
    return $status
}

# pacing_gaps FAMILY RATE: error of the mean rate in %, and the gaps' standard deviation, percentiles 1 and 99 and the
# width between in microseconds. Packets are told by their length; the first and last 5 % of the time are left out, so that
# no tool's warm-up or end marker counts.
pacing_gaps() {
    local filter="ip[2:2] = $((pacing_size + 28))"
    [ "$1" = ipv6 ] && filter="ip6[4:2] = $((pacing_size + 8))"
    # -ttt prints the time since the packet before: 00:00:00.000100032
    tcpdump -r "$work/capture" -nn -ttt --time-stamp-precision=nano "udp and $filter" 2>/dev/null |
        awk 'NR > 1 { split($1, t, ":"); print t[1] * 3.6e9 + t[2] * 6e7 + t[3] * 1e6 }' >"$work/gaps"
    awk 'NR == FNR { all += $1; next } { at += $1 } at >= 0.05 * all && at <= 0.95 * all' "$work/gaps" "$work/gaps" |
        sort -n | awk -v rate="$2" '{ gap[NR] = $1; sum += $1 } END {
            if (NR < 100) exit 1
            mean = sum / NR
            for (i in gap) square += (gap[i] - mean) ^ 2
            error = (1e6 / mean / rate - 1) * 100
            low = gap[int((NR - 1) * 0.01) + 1]; high = gap[int((NR - 1) * 0.99) + 1]
            printf "%.4f %.2f %.2f %.2f %.2f\n", error < 0 ? -error : error, sqrt(square / NR), low, high, high - low }'
}

pacing_rows() {
    local family rate round tool seconds
    echo family rate round tool error_pct gap_sd gap_p1 gap_p99 width
    offloads off
    for family in "${all_families[@]}"; do
        for rate in 1000 10000 100000; do
            seconds=$((rate < 100000 ? 2 : 1))
            for ((round = 1; round <= pairs; round++)); do
                say "pacing: $family, $rate packet/s, round $round of $pairs"
                for tool in $(turns "$round" stacklab iperf3 d-itg); do
                    ours_server
                    server iperf3 iperf3 -s
                    server itg ITGRecv
                    printf '%s %s %s %s ' "$family" "$rate" "$round" "$tool"
                    if attempt captured "pacing_$tool" "$family" "$rate" "$seconds"; then
                        pacing_gaps "$family" "$rate" || echo failed failed failed failed failed
                    else
                        echo failed failed failed failed failed
                    fi
                done
            done
        done
    done
}

pacing_about() {
    cat <<'END'
UDP packets of 128 bytes of payload at a rate, for two seconds (one at 100000 packet/s), offloads off, as captured by the kernel at
the receiver's interface. error_pct: error of the mean rate, in per cent, without its sign. gap_sd: standard deviation of the gaps
between packets, gap_p1 and gap_p99 their percentiles, width the distance between these, all in microseconds.
END
}

pacing_claims() {
    cat <<'END'
error_pct|low|stacklab|none|0.1|rate=10000|error of the mean rate in per cent
gap_sd|low|stacklab|best|1|rate=10000|standard deviation of the gaps
width|low|stacklab|best|1|rate=10000|1st to 99th percentile of the gaps
gap_sd|low|stacklab|each|||standard deviation of the gaps
width|low|stacklab|each|||1st to 99th percentile of the gaps
error_pct|low|stacklab|best|||error of the mean rate
END
}
