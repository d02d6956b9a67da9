# shellcheck shell=bash disable=SC2034  # the parts use these variables
# Two hosts for every tool alike: namespaces joined by a veth pair, one processor for each end, and a CPU meter.

# The first processor is the sender's, the last the receiver's.
sender_cpu=0
receiver_cpu=$(($(nproc) - 1))
work=$(mktemp -d)
failures=0

say() { printf 'bench: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# begin_hosts: makes both namespaces and the link. They live by two processes that the kernel kills when this script
# ends, however it ends; as each is the first process of a PID namespace, all that was started inside ends with it.
begin_hosts() {
    local end holder root
    for end in sender receiver; do
        setpriv --pdeathsig KILL unshare --net --pid --fork --kill-child sleep infinity >/dev/null 2>&1 &
        declare -g "${end}_holder=$!"
    done
    trap end_hosts EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    for end in sender receiver; do
        holder=${end}_holder
        for _ in {1..100}; do
            # The list has no end of line, so that `read` fails although it has read it.
            read -r "${end}_root" _ <"/proc/${!holder}/task/${!holder}/children" || true
            root=${end}_root
            [ -z "${!root}" ] || continue 2
            sleep 0.05
        done
        die "no namespace for the $end within 5 s: unshare needs root and kernel support for PID and network namespaces"
    done
    sleep 0.2
    # By the network namespace only: `ip` has to see the other end's process by its number out here.
    nsenter -t "$sender_root" -n ip link add v0 type veth peer name v0 netns "$receiver_root"
    for end in sender receiver; do
        "in_$end" ip link set lo up
        # The one that every kernel has and lets a namespace choose. BBR, which some machines have by default, spaces every
        # segment by a timer: that is then what is measured.
        "in_$end" sh -c 'echo reno >/proc/sys/net/ipv4/tcp_congestion_control'
        "in_$end" ip addr add "198.18.0.$([ $end = sender ] && echo 1 || echo 2)/24" dev v0
        "in_$end" ip addr add "2001:2::$([ $end = sender ] && echo 1 || echo 2)/64" dev v0 nodad
        "in_$end" ip link set v0 up
    done
}

end_hosts() {
    kill -9 "$sender_holder" "$receiver_holder" 2>/dev/null || true
    rm -rf "$work"
}

# in_sender COMMAND.., in_receiver COMMAND..: runs it at that end, on that end's processor; it ends when the shell does, and
# at the sender within $limit seconds.
limit=20
in_sender() {
    nsenter -t "$sender_root" -n -p setpriv --pdeathsig KILL taskset -c "$sender_cpu" timeout -k 1 "$limit" "$@"
}
in_receiver() { nsenter -t "$receiver_root" -n -p setpriv --pdeathsig KILL taskset -c "$receiver_cpu" "$@"; }

# address FAMILY: the receiver's.
address() { if [ "$1" = ipv6 ]; then echo 2001:2::2; else echo 198.18.0.2; fi; }

# offloads on|off: at both ends.
offloads() {
    local end
    for end in sender receiver; do
        "in_$end" ethtool -K v0 tso "$1" gso "$1" gro "$1" tx-udp-segmentation "$1" >/dev/null
    done
}

declare -A servers=()

# server NAME COMMAND..: sees to it that this server runs at the receiver; its output is in $work/NAME.out.
server() {
    local name=$1
    shift
    if [ -n "${servers[$name]:-}" ] && kill -0 "${servers[$name]}" 2>/dev/null; then return; fi
    # Not by the function: then the number would be that of a shell, and what it runs would outlive it.
    nsenter -t "$receiver_root" -n -p setpriv --pdeathsig KILL taskset -c "$receiver_cpu" "$@" >"$work/$name.out" 2>&1 &
    servers[$name]=$!
    sleep 0.3
}

# stop NAME: ends that server.
stop() {
    [ -n "${servers[$1]:-}" ] || return 0
    { kill -9 "${servers[$1]}" && wait "${servers[$1]}"; } 2>/dev/null || true
    unset "servers[$1]"
}

stop_all() { for name in "${!servers[@]}"; do stop "$name"; done; }

# busy CPU: milliseconds since the start that this processor was busy, in $busy (user, nice, system, irq and softirq
# time), and that the machine below had taken it away, in $taken.
busy() {
    local name user nice system idle wait irq softirq steal
    while read -r name user nice system idle wait irq softirq steal _; do
        if [ "$name" = "cpu$1" ]; then
            busy=$(((user + nice + system + irq + softirq) * 1000 / ticks))
            taken=$((steal * 1000 / ticks))
            return
        fi
    done </proc/stat
}
ticks=$(getconf CLK_TCK)

# metered COMMAND..: runs it; sender_busy and receiver_busy are then the milliseconds that each processor was busy, and
# stolen how many of both together were taken away.
metered() {
    local s r before status=0
    busy $sender_cpu && s=$busy before=$taken
    busy $receiver_cpu && r=$busy before=$((before + taken))
    "$@" || status=$?
    busy $sender_cpu && sender_busy=$((busy - s)) stolen=$taken
    busy $receiver_cpu && receiver_busy=$((busy - r)) stolen=$((stolen + taken - before))
    return "$status"
}

# More milliseconds of both processors taken away than this, and a measurement, which takes a second or two, is made again.
stolen_at_most=30
disturbed=0

# attempt COMMAND..: metered; a second time where it failed, and up to three times more where the processors were taken
# away meanwhile. A failure is said, counted and in the table as `failed`; what was disturbed each time is counted.
attempt() {
    local failed=0 again=0
    while true; do
        if metered "$@" 2>"$work/err"; then
            [ "$stolen" -gt $stolen_at_most ] || return 0
            if ((++again > 3)); then
                disturbed=$((disturbed + 1))
                return 0
            fi
            say "the machine took $stolen ms of its processors away, again: $*"
        elif ((++failed > 1)); then
            say "FAILED: $*: $(tail -n 2 "$work/err" | tr '\n' ' ')"
            failures=$((failures + 1))
            return 1
        else
            say "failed, again: $*: $(tail -n 2 "$work/err" | tr '\n' ' ')"
        fi
        sleep 0.1
    done
}

# turns ROUND TOOL..: the tools in their order, in every other round backwards.
turns() {
    local round=$1
    shift
    if ((round % 2)); then printf '%s\n' "$@"; else printf '%s\n' "$@" | tac; fi
}

# calc EXPRESSION [FORMAT]: arithmetic on figures.
calc() { awk "BEGIN { printf \"${2:-%.3f}\", $1 }"; }

# flood_servers FAMILY [-u]: the receiving ends of the flooding tools, for one run. Those of iperf do not outlive one
# client in some versions, and their output is that run's.
flood_servers() {
    local v6=()
    [ "$1" = ipv6 ] && v6=(-V)
    server iperf3 iperf3 -s
    server nuttcp4 nuttcp -S --nofork --single-threaded -4
    server nuttcp6 nuttcp -S --nofork --single-threaded -6 -P 5600
    server itg ITGRecv
    ours_server
    stop iperf
    server iperf iperf -s "${v6[@]}" "${@:2}" -f k
}
