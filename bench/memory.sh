# shellcheck shell=bash disable=SC2154  # other parts set these variables
# What an agent's memory comes to: resident set at its peak, after many packets and with many connections.

many_packets=10000000
many_flows=10000

# Each memory_CASE FAMILY: a measurement whose agents are looked at.
memory_packets() { limit=60 ours udp "$1" 64 -n $many_packets; }
memory_flows() { limit=60 ours tcp "$1" 64 -P $many_flows; }

memory_rows() {
    local family case round
    echo family case round tool sender receiver
    offloads off
    for family in "${all_families[@]}"; do
        for case in packets flows; do
            for ((round = 1; round <= pairs; round++)); do
                say "memory: $family, many $case, round $round of $pairs"
                ours_server
                printf '%s %s %s stacklab ' "$family" "$case" "$round"
                if attempt "memory_$case" "$family"; then
                    jq -r '[.ends[0, 1].peak_rss_kib / 1024] | map(tostring) | join(" ")' "$work/stacklab.json"
                else
                    echo failed failed
                fi
            done
        done
    done
}

memory_about() {
    cat <<END
Peak of the resident set of each agent, MiB. packets: a flood of $many_packets UDP packets of 64 bytes. flows: a second of
$many_flows TCP connections at once, in writes of 64 bytes.
END
}

memory_claims() {
    cat <<'END'
sender|low|stacklab|none|64|case=packets|MiB of the sender's agent
receiver|low|stacklab|none|64|case=packets|MiB of the receiver's agent
sender|low|stacklab|none|512|case=flows|MiB of the sender's agent
receiver|low|stacklab|none|512|case=flows|MiB of the receiver's agent
END
}
