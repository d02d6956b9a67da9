//! Validates socket options: compares the planned options with those read back.

use stacklab_model::{Endpoint, HostReport, Probe, Role, Transport, TrialSpec, Tuning, Warning};
use stacklab_traffic::timing::pacing_rate;

/// Maximum bytes of TCP options in a segment: the timestamps. The kernel's segment size of a connection excludes
/// them.
const TCP_OPTION_BYTES: u32 = 12;

/// Every contradiction between plan and socket. A different buffer size is only a warning ([`resized`]).
pub(crate) fn contradictions(spec: &TrialSpec, side: &HostReport) -> Vec<String> {
    let Tuning { nodelay, congestion_control, dscp, flow_label, busy_poll_us, mss, .. } = &spec.tuning;
    let Endpoint { options, congestion_control: observed_control, .. } = &side.endpoint;
    let (name, mut found) = (side.role.name(), Vec::new());
    let mut check = |option: &str, observed: Option<String>, planned: Option<String>| {
        if planned.is_some() && observed != planned {
            let (observed, planned) = (observed.unwrap_or("unknown".into()), planned.unwrap_or_default());
            found.push(format!("the {name}'s {option} is {observed}, planned is {planned}"));
        }
    };
    // A listening socket reports only the options that accepted connections will have.
    let listening =
        side.role == Role::Receiver && (side.endpoint.peer.port() == 0 || spec.probe.probe == Probe::Connect);
    if spec.transport == Transport::Tcp {
        check("congestion control", observed_control.clone(), congestion_control.clone());
        if !listening {
            check("TCP_NODELAY", text(options.nodelay), text(*nodelay));
        }
    }
    if side.role == Role::Sender {
        check("pacing rate", text(options.max_pacing_rate), text(pacing_rate(spec)));
    }
    check("DSCP", text(options.dscp), text(*dscp));
    check("busy polling", text(options.busy_poll_us), text(*busy_poll_us));
    // The kernel may refuse it to a receiver (`socket_options::set_listening`), or the receiver may have no single
    // peer; it sends only replies.
    let without = side.role == Role::Receiver && options.flow_label.is_none();
    if !listening && !without {
        check("flow label", text(options.flow_label), text(*flow_label));
    }
    found.extend(mss.and_then(|mss| segment_size(spec, side, mss)));
    found
}

fn segment_size(spec: &TrialSpec, side: &HostReport, planned: u32) -> Option<String> {
    let observed = side.endpoint.options.mss.unwrap_or(0);
    // The receiver sends almost nothing, so its own segments may stay small. A small window also makes the sender's
    // segments small.
    let any = side.role == Role::Receiver || spec.tuning.receive_buffer.is_some();
    let least = if any { 1 } else { planned.saturating_sub(TCP_OPTION_BYTES) };
    (!(least..=planned).contains(&observed)).then(|| {
        format!("the {}'s segments hold {observed} bytes, planned is an MSS of {planned}", side.role)
    })
}

fn text(value: Option<impl ToString>) -> Option<String> {
    value.map(|value| value.to_string())
}

/// Buffers that differ from the requested size. Linux doubles the requested size for its own bookkeeping, limited to
/// the machine's maximum (which root may exceed) and to a minimum of a packet or two.
pub(crate) fn resized(spec: &TrialSpec, host_reports: [&HostReport; 2]) -> Option<Warning> {
    let mut found = Vec::new();
    for side in host_reports {
        let (asked, options) = (&spec.tuning, &side.endpoint.options);
        for (what, asked, kept) in [
            ("send", asked.send_buffer, options.send_buffer),
            ("receive", asked.receive_buffer, options.receive_buffer),
        ] {
            let (Some(asked), Some(kept)) = (asked, kept) else { continue };
            if u64::from(kept) != 2 * u64::from(asked) {
                found.push(format!("the {}'s {what} buffer: {asked} requested, {} set", side.role, kept / 2));
            }
        }
    }
    (!found.is_empty()).then(|| Warning {
        code: "clamped".to_owned(),
        text: format!("socket buffers differ from the requested sizes, in bytes: {}", found.join("; ")),
        advice: "run as root, raise net.core.wmem_max and net.core.rmem_max, or use a size between a few KiB and those"
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{host_reports, spec};
    use stacklab_model::Family;

    /// A stream with every option set, and both of its sides as they should be.
    fn tuned() -> (TrialSpec, [HostReport; 2]) {
        let mut spec = spec(Family::Ipv6, Transport::Tcp);
        spec.tuning = Tuning {
            send_buffer: Some(100_000),
            receive_buffer: None,
            mss: Some(1200),
            nodelay: Some(false),
            congestion_control: Some("reno".into()),
            dscp: Some(46),
            flow_label: Some(7),
            busy_poll_us: Some(50),
            kernel_pacing: None,
        };
        let host_reports = host_reports(&spec);
        let mut host_reports = [host_reports.0, host_reports.1];
        for side in &mut host_reports {
            side.endpoint.congestion_control = Some("reno".into());
            side.endpoint.options = stacklab_model::SocketOptions {
                send_buffer: Some(200_000),
                receive_buffer: Some(131_072),
                mss: Some(1188),
                nodelay: Some(false),
                dscp: Some(46),
                flow_label: Some(7),
                busy_poll_us: Some(50),
                max_pacing_rate: None,
            };
        }
        (spec, host_reports)
    }

    #[test]
    fn sockets_as_planned_contradict_nothing() {
        let (spec, [sender, receiver]) = tuned();
        assert_eq!(contradictions(&spec, &sender), [""; 0]);
        assert_eq!(contradictions(&spec, &receiver), [""; 0]);
        assert_eq!(resized(&spec, [&sender, &receiver]), None);
    }

    #[test]
    fn each_option_that_did_not_take_effect_is_named() {
        let said = |change: &dyn Fn(&mut Endpoint)| {
            let (spec, [mut sender, _]) = tuned();
            change(&mut sender.endpoint);
            contradictions(&spec, &sender).join("; ")
        };
        assert_eq!(said(&|e| e.options.dscp = Some(0)), "the sender's DSCP is 0, planned is 46");
        assert_eq!(
            said(&|e| e.options.nodelay = Some(true)),
            "the sender's TCP_NODELAY is true, planned is false"
        );
        assert_eq!(
            said(&|e| e.options.flow_label = None),
            "the sender's flow label is unknown, planned is 7"
        );
        assert_eq!(
            said(&|e| e.options.busy_poll_us = Some(0)),
            "the sender's busy polling is 0, planned is 50"
        );
        assert_eq!(
            said(&|e| e.congestion_control = Some("cubic".into())),
            "the sender's congestion control is cubic, planned is reno"
        );
        for mss in [1187, 1201] {
            assert_eq!(
                said(&|e| e.options.mss = Some(mss)),
                format!("the sender's segments hold {mss} bytes, planned is an MSS of 1200")
            );
        }
    }

    #[test]
    fn a_buffer_that_was_clamped_is_a_warning() {
        let (spec, [mut sender, receiver]) = tuned();
        sender.endpoint.options.send_buffer = Some(180_000);
        let warning = resized(&spec, [&sender, &receiver]).unwrap();
        assert_eq!(warning.code, "clamped");
        assert!(
            warning.text.ends_with("the sender's send buffer: 100000 requested, 90000 set"),
            "{}",
            warning.text
        );
    }
}
