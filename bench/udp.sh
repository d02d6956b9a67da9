# shellcheck shell=bash disable=SC2154  # received and seconds come from the tool's function
# UDP flood: what arrives, and what an arriving packet costs.

# Each udp_TOOL FAMILY SIZE floods for a second and sets received (packets) and seconds.
udp_stacklab() { ours udp "$1" "$2" --io sendmmsg && ours_received; }
udp_stacklab-segment() { ours udp "$1" "$2" --io gso && ours_received; }

udp_iperf3() {
    in_sender iperf3 -c "$(address "$1")" -u -b 0 -l "$2" -t 1 --json >"$work/iperf3.json" || return 1
    read -r received seconds < <(jq -r '.end.sum | "\(.packets - .lost_packets) \(.seconds)"' "$work/iperf3.json")
}

udp_iperf() {
    local v6=()
    [ "$1" = ipv6 ] && v6=(-V)
    in_sender iperf "${v6[@]}" -c "$(address "$1")" -u -b 100g -l "$2" -t 1 -e -f k >"$work/iperf.txt" || return 1
    # [  1] 0.0000-0.9999 sec  15141 KBytes  124078 Kbits/sec   0.000 ms 766/242315 (0.32%)
    read -r received seconds < <(sed -n '/Server Report/,$p' "$work/iperf.txt" | tr '/-' '  ' |
        awk '/%/ { for (i = 1; i <= NF; i++) if ($i == "ms") print $(i + 2) - $(i + 1), $4 - $3 }')
}

udp_nuttcp() {
    local control=5000
    [ "$1" = ipv6 ] && control=5600
    in_sender nuttcp "-${1#ipv}" -P $control -u -R0 "-l$2" -T1 -fparse "$(address "$1")" >"$work/nuttcp.txt" || return 1
    read -r received seconds < <(sed -n 's/.*real_seconds=\([0-9.]*\).*drop=\([0-9]*\) pkt=\([0-9]*\).*/\3 \2 \1/p' \
        "$work/nuttcp.txt" | awk '{ print $1 - $2, $3 }')
}

udp_d-itg() { itg "$1" -T UDP -c "$2" -C 10000000 -t 1000 && itg_count; }

# One row a run: rates of what the receiver got, and processor time over it, the same way for every tool.
udp_rows() {
    local offload family size round tool
    echo offloads family size round tool kpps mbit rx_ns both_ns
    for offload in "${all_offloads[@]}"; do
        offloads "$offload"
        for family in "${all_families[@]}"; do
            for size in "${all_sizes[@]}"; do
                for ((round = 1; round <= pairs; round++)); do
                    say "udp: offloads $offload, $family, $size bytes, round $round of $pairs"
                    for tool in $(turns "$round" stacklab stacklab-segment iperf3 iperf nuttcp d-itg); do
                        flood_servers "$family" -u
                        received=0 seconds=0
                        printf '%s %s %s %s %s ' "$offload" "$family" "$size" "$round" "$tool"
                        if attempt "udp_$tool" "$family" "$size" && [ "${received:-0}" -gt 0 ]; then
                            awk -v n="$received" -v s="$seconds" -v size="$size" -v r="$receiver_busy" \
                                -v all="$((receiver_busy + sender_busy))" 'BEGIN { printf "%.1f %.1f %.0f %.0f\n",
                                    n / s / 1e3, n * size * 8 / s / 1e6, r * 1e6 / n, all * 1e6 / n }'
                        else
                            echo failed failed failed failed
                        fi
                    done
                done
            done
        done
    done
}

udp_about() {
    cat <<'END'
UDP flood for one second, socket buffers as each tool has them. kpps and mbit: thousands of packets and Mbit of payload
received per second, by the tool's own count at the receiver. rx_ns and both_ns: time that the receiver's processor, or
both, were busy over the whole run (/proc/stat), per packet received. On a veth pair the sender's processor also does
the receiver's work up to the socket, so both_ns is the whole cost. stacklab-segment is `--io gso` (UDP_SEGMENT and UDP_GRO).
END
}

udp_claims() {
    cat <<'END'
kpps|high|stacklab|best|1||packets received per second
kpps|high|stacklab-segment|iperf3|2|size=64,512|with UDP_SEGMENT and UDP_GRO, packets received per second
kpps|high|stacklab-segment|best|||with UDP_SEGMENT and UDP_GRO, packets received per second
kpps|high|stacklab|each|||packets received per second
rx_ns|low|stacklab|best|||receiver's processor per packet
both_ns|low|stacklab|best|||both processors per packet
both_ns|low|stacklab-segment|best|||with UDP_SEGMENT and UDP_GRO, both processors per packet
END
}
