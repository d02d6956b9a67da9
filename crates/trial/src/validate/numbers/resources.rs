//! Rules of resources: no processor works more than all the time, and TCP sends nothing again that it has not sent.

use super::Host;
use crate::validate::Rule;
use stacklab_model::{CpuScope, CpuTime, HostReport, TcpInfo, add_up, print_duration};

/// No system of one kernel has more processors (Linux on x86 is built for 8192 at most).
pub(crate) const MAX_PROCESSORS: u32 = 8192;
/// CPU time comes in ticks of up to 16 ms: a window has up to two more of each processor than fit into it.
const TICKS_NS: u64 = 50_000_000;
/// The share of a window by which CPU time may exceed it: its two readings take time themselves.
const CPU_SHARE: u64 = 10;
/// Idle and stolen time are estimates: a tick may be counted as both, and a processor that sleeps counts late. They are
/// up to twice the window and this long, nanoseconds.
const IDLE_SLACK_NS: u64 = 1_000_000_000;
/// The most memory of a machine, KiB: 64 TiB.
const MAX_MEMORY_KIB: u64 = 1 << 36;
/// Attempts to open a flow, which are no data segments: the most that Linux can be set to.
const MAX_OPENINGS: u64 = 255;
/// The least payload of a full segment, bytes (`TCP_MIN_SND_MSS` of Linux).
const MIN_SEGMENT: u64 = 48;
/// How often a segment may be sent again, where its system does not count segments.
const MAX_REPEATS: u64 = 255;

pub(super) fn resource_rules(host: &Host<'_>) -> Vec<Rule> {
    let HostReport { cpu, tcp, socket_memory_kib, .. } = host.report;
    let name = host.role;
    let memory_kib = socket_memory_kib.unwrap_or(0);
    let mut rules = vec![(
        memory_kib <= MAX_MEMORY_KIB,
        format!("the {name} reports {memory_kib} KiB of memory for its sockets"),
    )];
    rules.extend(slice_rule(host));
    if let Some(cpu) = cpu {
        rules.extend(cpu_rules(host, cpu));
    }
    if let Some(tcp) = tcp {
        rules.extend(tcp_rules(host, tcp));
    }
    rules
}

fn cpu_rules(host: &Host<'_>, cpu: &CpuTime) -> Vec<Rule> {
    let name = host.role;
    let window_ns = cpu.window_ns;
    // Threads work also between their slices, which make up the window. The processes of a guest run on the machine's
    // processors, which may be more than the guest's.
    let working_ns = if cpu.scope == CpuScope::Threads { host.longest_ns } else { window_ns };
    let is_outside = cpu.scope == CpuScope::Outside;
    let processors = u64::from(if is_outside { MAX_PROCESSORS } else { host.processors });
    let each_ns = working_ns.saturating_add(working_ns / CPU_SHARE).saturating_add(TICKS_NS);
    let most_ns = processors.saturating_mul(each_ns);
    let idle_ns = cpu.idle_ns.saturating_add(cpu.steal_ns);
    let most_idle_ns = processors.saturating_mul(window_ns.saturating_mul(2).saturating_add(IDLE_SLACK_NS));
    let own_ns = cpu.own_user_ns.saturating_add(cpu.own_system_ns);
    let window = print_duration(window_ns);
    let mut rules = vec![(
        window_ns <= host.longest_ns,
        format!("the {name} reports CPU time of {window}{}", host.of_trial()),
    )];
    for (what, found_ns, most_ns) in [
        ("busy", cpu.busy_ns(), most_ns),
        ("busy with its agent", own_ns, most_ns),
        ("idle", idle_ns, most_idle_ns),
    ] {
        let found = print_duration(found_ns);
        let reason = format!(
            "the {name} reports that its processors were {what} for {found} within {window}: it has {processors}"
        );
        rules.push((found_ns <= most_ns, reason));
    }
    rules
}

/// One thread runs on one processor, and several on no more than there are.
fn slice_rule(host: &Host<'_>) -> Option<Rule> {
    let slices = &host.report.slices;
    let worked_ns = add_up(slices.iter().filter_map(|slice| slice.cpu_ns));
    let waited_ns = slices.iter().filter_map(|slice| slice.waited_ns).max().unwrap_or(0);
    let name = host.role;
    let each_ns = host.longest_ns.saturating_add(TICKS_NS);
    let most_ns = u64::from(host.processors).saturating_mul(each_ns);
    // Each of the threads may wait all the time, and there are no more than flows.
    let most_waited_ns = u64::from(host.spec.flows.max(1)).saturating_mul(each_ns);
    let worked = print_duration(worked_ns);
    let waited = print_duration(waited_ns);
    let holds = worked_ns <= most_ns && waited_ns <= most_waited_ns;
    (!holds).then(|| {
        let end = host.of_trial();
        (
            false,
            format!(
                "the {name} reports that in its slices it worked for {worked}, or waited for {waited}{end}"
            ),
        )
    })
}

fn tcp_rules(host: &Host<'_>, tcp: &TcpInfo) -> Vec<Rule> {
    let HostReport { sent, .. } = host.report;
    let name = host.role;
    let flows = u64::from(host.spec.flows.max(1));
    let repeated = tcp.total_retrans.unwrap_or(0);
    // Linux counts a segment when it is sent again as one that was sent, too, whether it leaves or not.
    let segments = match tcp.data_segs_out {
        Some(segments) => segments,
        None => {
            let each = u64::from(host.spec.message_bytes).div_ceil(MIN_SEGMENT).max(1);
            sent.of_trial().saturating_add(sent.discarded).saturating_mul(each).saturating_mul(MAX_REPEATS)
        }
    };
    let most = segments.saturating_add(flows.saturating_mul(MAX_OPENINGS));
    let mut rules = vec![(
        repeated <= most,
        format!("the {name} reports {repeated} segments sent again, of {segments} sent"),
    )];
    if let (Some(bytes), Some(again)) = (tcp.bytes_sent, tcp.bytes_retrans) {
        rules.push((again <= bytes, format!("the {name} reports {again} bytes sent again, of {bytes} sent")));
    }
    let longest_us = host.longest_ns as f64 / 1e3;
    let round_trips = [tcp.rtt_us.map(|us| us as f64), tcp.min_rtt_us.map(|us| us as f64), tcp.srtt_mean_us];
    for us in round_trips.into_iter().flatten() {
        let text = print_duration((us * 1e3) as u64);
        rules.push((
            us <= longest_us,
            format!("the {name}'s TCP reports a round trip of {text}{}", host.of_trial()),
        ));
    }
    rules
}
