# shellcheck shell=bash disable=SC2154,SC2046  # bytes and seconds come from the tool's function; an option may be none
# TCP stream: writes of one size, what arrives and what a byte costs the sender. With NODELAY=on every tool is told to
# send each write at once.

# nodelay OPTION: the option, where it is asked for.
nodelay() { [ "${NODELAY:-off}" = off ] || echo "$1"; }

# Each tcp_TOOL FAMILY SIZE streams for a second and sets bytes (received) and seconds.
tcp_stacklab() { ours tcp "$1" "$2" $(nodelay -N) && ours_received; }

tcp_iperf3() {
    in_sender iperf3 -c "$(address "$1")" $(nodelay -N) -l "$2" -t 1 --json >"$work/iperf3.json" || return 1
    read -r bytes seconds < <(jq -r '.end.sum_received | "\(.bytes) \(.seconds)"' "$work/iperf3.json")
}

# Its client counts what it wrote; the server says what arrived.
tcp_iperf() {
    local v6=()
    [ "$1" = ipv6 ] && v6=(-V)
    in_sender iperf "${v6[@]}" -c "$(address "$1")" $(nodelay -N) -l "$2" -t 1 >/dev/null || return 1
    sleep 0.1
    # [  1] 0.0000-1.0006 sec  133021 KBytes  1088987 Kbits/sec
    read -r bytes seconds < <(awk '/Kbits\/sec/ { split($3, t, "-"); print $5 * 1024, t[2] - t[1] }' "$work/iperf.out" |
        tail -n 1)
}

# Its data would go to iperf's server, which has the port that both have by themselves.
tcp_nuttcp() {
    local control=5000
    [ "$1" = ipv6 ] && control=5600
    in_sender nuttcp "-${1#ipv}" -P $control -p 5101 $(nodelay -D) "-l$2" -T1 -fparse "$(address "$1")" >"$work/nuttcp.txt" || return 1
    # Two forms: its server may know the sender's count only, which is all that a TCP stream's end brings.
    #   megabytes=326.0415 real_seconds=1.00 rate_Mbps=2744.3459 ..
    #   251.4894 MB /   1.00 sec = 2109.4792 Mbps ..
    read -r bytes seconds < <(sed -n -e 's/.*megabytes=\([0-9.]*\) .*rate_Mbps=\([0-9.]*\).*/\1 \2/p' \
        -e 's/^ *\([0-9.]*\) MB .* = *\([0-9.]*\) Mbps.*/\1 \2/p' "$work/nuttcp.txt" |
        awk '{ b = $1 * 1048576; printf "%.0f %.6f\n", b, b * 8 / ($2 * 1e6) }')
}

tcp_d-itg() { itg "$1" -T TCP $(nodelay -D) -c "$2" -C 10000000 -t 1000 && itg_count; }

tcp_rows() {
    local offload family size round tool
    echo offloads family size round tool mbit tx_ns both_ns
    for offload in "${all_offloads[@]}"; do
        offloads "$offload"
        for family in "${all_families[@]}"; do
            for size in "${all_sizes[@]}"; do
                for ((round = 1; round <= pairs; round++)); do
                    say "tcp: offloads $offload, $family, $size bytes, round $round of $pairs"
                    for tool in $(turns "$round" stacklab iperf3 iperf nuttcp d-itg); do
                        flood_servers "$family"
                        bytes=0 seconds=0
                        printf '%s %s %s %s %s ' "$offload" "$family" "$size" "$round" "$tool"
                        if attempt "tcp_$tool" "$family" "$size" && [ "${bytes:-0}" -gt 0 ]; then
                            awk -v n="$bytes" -v s="$seconds" -v t="$sender_busy" -v all="$((receiver_busy + sender_busy))" \
                                'BEGIN { printf "%.1f %.3f %.3f\n", n * 8 / s / 1e6, t * 1e6 / n, all * 1e6 / n }'
                        else
                            echo failed failed failed
                        fi
                    done
                done
            done
        done
    done
}

tcp_about() {
    echo "TCP stream for one second in writes of that size, TCP_NODELAY ${NODELAY:-as each tool has it by itself}."
    cat <<'END'
mbit: Mbit of payload received per second. tx_ns and both_ns: time that the sender's processor, or both, were busy over the whole run (/proc/stat), per byte received.
END
}

tcp_claims() {
    cat <<'END'
mbit|high|stacklab|best|1||throughput
tx_ns|low|stacklab|best|1||sender's processor per byte
mbit|high|stacklab|each|||throughput
both_ns|low|stacklab|best|||both processors per byte
END
}
