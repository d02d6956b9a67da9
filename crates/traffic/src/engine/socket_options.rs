//! Socket options of a trial ([`Tuning`]): setting them and reading them back.

use crate::sys;
use socket2::{SockAddr, Socket};
use stacklab_model::{Family, Io, SizeOf, SocketOptions, Transport, TrialSpec, Tuning};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether buffers may be larger than this system lets every user have, where this process has the privilege.
static PRIVILEGED: AtomicBool = AtomicBool::new(true);

/// From now on no trial has larger socket buffers than any user of this system may have.
pub fn renounce_privileges() {
    PRIVILEGED.store(false, Ordering::Relaxed);
}

/// Sets the options of a new socket before bind: buffers and MSS must be set before connect or listen.
pub(crate) fn set(socket: &Socket, spec: &TrialSpec) -> io::Result<()> {
    let Tuning {
        send_buffer,
        receive_buffer,
        mss,
        nodelay: _,
        congestion_control,
        dscp,
        flow_label,
        busy_poll_us,
        kernel_pacing: _,
    } = &spec.tuning;
    let is_privileged = PRIVILEGED.load(Ordering::Relaxed);
    if let Some(bytes) = send_buffer {
        let size = *bytes as usize;
        let set = if is_privileged {
            sys::set_send_buffer(socket, size)
        } else {
            socket.set_send_buffer_size(size)
        };
        set.named("SO_SNDBUF", bytes)?;
    }
    if let Some(bytes) = receive_buffer {
        let size = *bytes as usize;
        let set = if is_privileged {
            sys::set_receive_buffer(socket, size).map(drop)
        } else {
            socket.set_recv_buffer_size(size)
        };
        set.named("SO_RCVBUF", bytes)?;
    }
    if let Some(bytes) = mss {
        sys::set_mss(socket, *bytes).named("TCP_MAXSEG", bytes)?;
    }
    if let Some(name) = congestion_control {
        sys::set_congestion_control(socket, name).named("TCP_CONGESTION", name)?;
    }
    if let Some(code_point) = dscp {
        sys::set_traffic_class(socket, spec.family, code_point << 2).named("the DSCP", code_point)?;
    }
    if *flow_label == Some(0) && spec.family == Family::Ipv6 {
        sys::no_flow_label(socket).named("the flow label", &0)?;
    }
    if let Some(microseconds) = busy_poll_us {
        sys::set_busy_poll_us(socket, *microseconds).named("SO_BUSY_POLL", microseconds)?;
    }
    Ok(())
}

/// Whether the messages of a trial may share segments. True for a TCP flood with `size_of = write`, where the next
/// message follows at once, unless the study sets `nodelay` or requires one call per message.
pub(crate) fn shares_segments(spec: &TrialSpec) -> bool {
    let joinable = spec.transport == Transport::Tcp && spec.size_of == SizeOf::Write;
    joinable && spec.is_flood() && spec.io == Io::Sendmmsg && spec.tuning.nodelay.is_none()
}

pub(crate) fn set_connected(socket: &Socket, spec: &TrialSpec) -> io::Result<()> {
    let nodelay = spec.tuning.nodelay.unwrap_or(!shares_segments(spec));
    socket.set_tcp_nodelay(nodelay).named("TCP_NODELAY", &nodelay)
}

/// Sets SO_MAX_PACING_RATE on a sender's TCP socket, if the kernel paces.
pub(crate) fn set_pacing(socket: &Socket, spec: &TrialSpec) -> io::Result<()> {
    match pacing_rate(spec) {
        Some(rate) => {
            // Queued data was written before its scheduled time: keep the queue as short as possible.
            let waiting = 2 * spec.message_bytes as usize;
            sys::set_pacing_rate(socket, rate, waiting).named("SO_MAX_PACING_RATE", &rate)
        }
        None => Ok(()),
    }
}

/// Pacing rate of each flow, payload bytes per second.
pub fn pacing_rate(spec: &TrialSpec) -> Option<u64> {
    let messages = spec.kernel_paced()? / f64::from(spec.flows);
    Some((messages * f64::from(spec.message_bytes)).round().max(1.0) as u64)
}

/// Makes a listening socket reflect the flow label of incoming connections. The kernel refuses this if
/// net.ipv6.flowlabel_consistency is set (the default); then it chooses the labels of the replies, and the endpoint
/// reports that. Testbeds clear that setting.
pub(crate) fn set_listening(socket: &Socket, spec: &TrialSpec) -> io::Result<()> {
    match (label(spec), spec.transport) {
        (Some(label), Transport::Tcp) => match sys::reflect_flow_label(socket) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            reflected => reflected.named("the flow label", &label),
        },
        _ => Ok(()),
    }
}

/// The address to connect to, with the flow label of the socket's packets.
pub(crate) fn destination(socket: &Socket, spec: &TrialSpec, to: SocketAddr) -> io::Result<SockAddr> {
    let (SocketAddr::V6(mut to), Some(label)) = (to, label(spec)) else { return Ok(to.into()) };
    sys::lease_flow_label(socket, *to.ip(), label).named("the flow label", &label)?;
    // The standard library passes the field unchanged to the kernel, which expects network byte order.
    to.set_flowinfo(label.to_be());
    Ok(to.into())
}

fn label(spec: &TrialSpec) -> Option<u32> {
    spec.tuning.flow_label.filter(|label| *label > 0 && spec.family == Family::Ipv6)
}

pub(crate) fn read_back(socket: &Socket, family: Family, transport: Transport) -> SocketOptions {
    let is_tcp = transport == Transport::Tcp;
    let bytes = |size: io::Result<usize>| size.ok().and_then(|size| u32::try_from(size).ok());
    SocketOptions {
        send_buffer: bytes(socket.send_buffer_size()),
        receive_buffer: bytes(socket.recv_buffer_size()),
        mss: is_tcp.then(|| sys::mss(socket).ok()).flatten(),
        nodelay: is_tcp.then(|| socket.tcp_nodelay().ok()).flatten(),
        dscp: sys::traffic_class(socket, family).ok().map(|byte| (byte >> 2) as u8),
        flow_label: (family == Family::Ipv6).then(|| sys::flow_label(socket)).flatten(),
        busy_poll_us: sys::busy_poll_us(socket).ok(),
        max_pacing_rate: is_tcp.then(|| sys::pacing_rate(socket)).flatten(),
    }
}

trait Named<T> {
    fn named(self, option: &str, value: &impl std::fmt::Display) -> io::Result<T>;
}

impl<T> Named<T> for io::Result<T> {
    fn named(self, option: &str, value: &impl std::fmt::Display) -> io::Result<T> {
        self.map_err(|error| io::Error::new(error.kind(), format!("{option} cannot be {value}: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::receiver::Receiver;
    use crate::engine::sender;
    use crate::fixtures;
    use stacklab_model::{Length, Probe};

    fn spec(family: Family, transport: Transport, probe: Probe) -> TrialSpec {
        let mut spec = fixtures::spec(family, transport);
        spec.probe.probe = probe;
        spec.probe.length = Length::Packets(5);
        spec.tuning = Tuning {
            send_buffer: Some(50_000),
            receive_buffer: Some(60_000),
            dscp: Some(46),
            busy_poll_us: Some(20),
            flow_label: (family == Family::Ipv6).then_some(0xabcde),
            ..Tuning::default()
        };
        if transport == Transport::Tcp {
            spec.tuning.mss = Some(1000);
            spec.tuning.nodelay = Some(false);
            spec.tuning.congestion_control = Some("reno".into());
        }
        spec
    }

    #[test]
    fn what_the_sockets_are_told_takes_effect_on_both_hosts() {
        for family in Family::ALL.iter().copied() {
            for transport in Transport::ALL.iter().copied() {
                for probe in [Probe::Stream, Probe::Echo, Probe::Connect] {
                    if !probe.supports(transport) {
                        continue;
                    }
                    let spec = spec(family, transport, probe);
                    let receiver = Receiver::listen(spec.clone(), family.loopback()).unwrap();
                    let sender = sender::run(&spec, family.loopback(), receiver.address).unwrap();
                    let receiver = receiver.collect().unwrap();
                    for side in [&sender, &receiver] {
                        let options = &side.endpoint.options;
                        assert_eq!(
                            (options.dscp, options.busy_poll_us),
                            (Some(46), Some(20)),
                            "{probe}, {side:?}"
                        );
                        // Linux doubles the sizes.
                        assert!(options.send_buffer.is_none_or(|kept| kept == 100_000), "{probe}, {side:?}");
                        assert!(
                            options.receive_buffer.is_none_or(|kept| kept == 120_000),
                            "{probe}, {side:?}"
                        );
                        if transport == Transport::Tcp {
                            assert_eq!(side.endpoint.congestion_control.as_deref(), Some("reno"), "{probe}");
                        }
                    }
                    assert_eq!(sender.endpoint.options.flow_label, spec.tuning.flow_label);
                    if transport == Transport::Tcp {
                        assert_eq!(sender.endpoint.options.mss, Some(988));
                        assert_eq!(sender.endpoint.options.nodelay, Some(false));
                    }
                }
            }
        }
    }

    #[test]
    fn flow_label_0_is_none_and_not_the_kernels_choice() {
        let mut spec = spec(Family::Ipv6, Transport::Udp, Probe::Stream);
        let label = |spec: &TrialSpec| {
            let receiver = Receiver::listen(spec.clone(), spec.family.loopback()).unwrap();
            let sender = sender::run(spec, spec.family.loopback(), receiver.address).unwrap();
            receiver.collect().unwrap();
            sender.endpoint.options.flow_label
        };
        spec.tuning.flow_label = None;
        assert_eq!(label(&spec), None);
        spec.tuning.flow_label = Some(0);
        assert_eq!(label(&spec), Some(0));
    }

    #[test]
    fn a_refused_option_is_named() {
        let mut spec = spec(Family::Ipv4, Transport::Tcp, Probe::Stream);
        spec.tuning.congestion_control = Some("no_such".into());
        let refused = Receiver::listen(spec, Family::Ipv4.loopback()).err().unwrap().to_string();
        assert!(refused.contains("TCP_CONGESTION cannot be no_such"), "{refused}");
    }
}
