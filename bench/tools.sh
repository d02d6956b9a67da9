# shellcheck shell=bash
# The tools beside which stacklab is measured: Debian's packages. Installs what is missing, and says what.

need_tools() {
    local command package missing=()
    while read -r command package; do
        command -v "$command" >/dev/null || missing+=("$package")
    done <<-'END'
		iperf3 iperf3
		iperf iperf
		nuttcp nuttcp
		ITGSend d-itg
		sockperf sockperf
		qperf qperf
		jq jq
		ethtool ethtool
		tcpdump tcpdump
		ip iproute2
		setpriv util-linux
	END
    [ "${#missing[@]}" -gt 0 ] || return 0
    command -v apt-get >/dev/null || die "install what these Debian packages hold, then run this again: ${missing[*]}"
    say "installing with apt-get: ${missing[*]}"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# versions: of all that takes part in a result, a line each.
versions() {
    echo "$("$stacklab" --version), commit $(git describe --always --dirty)"
    iperf3 --version | head -n 1
    iperf -v 2>&1 | head -n 1 || true
    nuttcp -V
    ITGSend -h 2>&1 | head -n 1 || true
    sockperf --version | head -n 1
    qperf --version
    tcpdump --version 2>&1 | head -n 1
    echo "Linux $(uname -r), $(nproc) processors: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
    echo "sender on processor $sender_cpu, receiver on $receiver_cpu; their cores' siblings:" \
        "$(cat /sys/devices/system/cpu/cpu{"$sender_cpu","$receiver_cpu"}/topology/thread_siblings_list 2>/dev/null |
            tr '\n' ' ')"
}

# at_rest: how busy both processors are while nothing is measured; the CPU figures hold that too.
at_rest() {
    metered sleep 1
    echo "at rest, one second: sender's processor $sender_busy ms busy, receiver's $receiver_busy ms"
}
