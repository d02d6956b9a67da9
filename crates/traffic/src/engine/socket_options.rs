//! Socket options of a trial ([`Tuning`]): setting them and reading them back.

use crate::engine::mapped;
use crate::sys::{self, Socket, SocketOption};
use socket2::SockAddr;
use stacklab_model::{Family, Io, SizeOf, SocketOptions, Transport, TrialSpec, Tuning};
use std::fmt::Display;
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
        socket: _,
        send_buffer,
        receive_buffer,
        mss,
        nodelay: _,
        congestion_control,
        dscp,
        flow_label,
        busy_poll_us,
        kernel_pacing: _,
    } = &*spec.tuning;
    let set = |option, name: &str, value: &dyn Display| sys::set(socket, option).name_option(name, value);
    if PRIVILEGED.load(Ordering::Relaxed) {
        if let Some(bytes) = send_buffer {
            set(SocketOption::SendBuffer(*bytes as usize), "SO_SNDBUF", bytes)?;
        }
        if let Some(bytes) = receive_buffer {
            set(SocketOption::ReceiveBuffer(*bytes as usize), "SO_RCVBUF", bytes)?;
        }
    } else {
        if let Some(bytes) = send_buffer {
            socket.set_send_buffer_size(*bytes as usize).name_option("SO_SNDBUF", bytes)?;
        }
        if let Some(bytes) = receive_buffer {
            socket.set_recv_buffer_size(*bytes as usize).name_option("SO_RCVBUF", bytes)?;
        }
    }
    if spec.transport == Transport::Tcp && spec.size_of != SizeOf::Write {
        sys::set(socket, SocketOption::WholeMessages(spec.message_bytes as usize))?;
    }
    if let Some(bytes) = mss {
        set(SocketOption::Mss(*bytes), "TCP_MAXSEG", bytes)?;
    }
    if let Some(name) = congestion_control {
        set(SocketOption::CongestionControl(name), "TCP_CONGESTION", name)?;
    }
    if let Some(code_point) = dscp {
        set(SocketOption::TrafficClass(spec.family, code_point << 2), "the DSCP", code_point)?;
    }
    if *flow_label == Some(0) && spec.family == Family::Ipv6 {
        set(SocketOption::NoFlowLabel, "the flow label", &0)?;
    }
    if let Some(microseconds) = busy_poll_us {
        set(SocketOption::BusyPoll(*microseconds), "SO_BUSY_POLL", microseconds)?;
    }
    Ok(())
}

/// Whether the messages of a trial may share segments. True for a TCP flood with `size_of = write`, where the next
/// message follows at once, unless the study sets `nodelay` or requires one call per message.
pub(crate) fn shares_segments(spec: &TrialSpec) -> bool {
    let joinable = spec.transport == Transport::Tcp && spec.size_of == SizeOf::Write;
    joinable && spec.is_flood() && spec.io == Io::Sendmmsg && spec.tuning.nodelay.is_none()
}

pub(crate) fn set_after_connect(socket: &Socket, spec: &TrialSpec) -> io::Result<()> {
    let nodelay = spec.tuning.nodelay.unwrap_or(!shares_segments(spec));
    socket.set_tcp_nodelay(nodelay).name_option("TCP_NODELAY", &nodelay)
}

/// Sets SO_MAX_PACING_RATE on a sender's TCP socket, if the kernel paces.
pub(crate) fn set_pacing(socket: &Socket, spec: &TrialSpec) -> io::Result<()> {
    let Some(bytes_per_second) = pacing_rate(spec) else { return Ok(()) };
    // Queued data was written before its scheduled time: keep the queue as short as possible.
    let waiting = 2 * spec.message_bytes as usize;
    sys::set(socket, SocketOption::Pacing { bytes_per_second, waiting })
        .name_option("SO_MAX_PACING_RATE", &bytes_per_second)
}

/// Pacing rate of each flow, payload bytes per second.
pub fn pacing_rate(spec: &TrialSpec) -> Option<u64> {
    let messages = spec.kernel_pacing_rate()? / f64::from(spec.flows);
    Some((messages * f64::from(spec.message_bytes)).round().max(1.0) as u64)
}

/// Makes a listening socket reflect flow labels. Where net.ipv6.flowlabel_consistency is set, which testbeds clear,
/// the kernel refuses and chooses the labels of replies; the endpoint reports that.
pub(crate) fn set_listening(socket: &Socket, spec: &TrialSpec) -> io::Result<()> {
    let Some(label) = label(spec) else { return Ok(()) };
    match sys::set(socket, SocketOption::ReflectFlowLabel) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        reflected => reflected.name_option("the flow label", &label),
    }
}

/// The address to connect to, with the flow label of the socket's packets.
pub(crate) fn destination(socket: &Socket, spec: &TrialSpec, to: SocketAddr) -> io::Result<SockAddr> {
    let to = mapped::to_socket(spec, to);
    let (SocketAddr::V6(mut to), Some(label)) = (to, label(spec)) else { return Ok(to.into()) };
    sys::set(socket, SocketOption::FlowLabel(*to.ip(), label)).name_option("the flow label", &label)?;
    // The standard library passes the field unchanged to the kernel, which expects network byte order.
    to.set_flowinfo(label.to_be());
    Ok(to.into())
}

fn label(spec: &TrialSpec) -> Option<u32> {
    spec.tuning.flow_label.filter(|label| *label > 0 && spec.family == Family::Ipv6)
}

pub(crate) fn read_back(socket: &Socket, family: Family, transport: Transport) -> SocketOptions {
    let is_tcp = transport == Transport::Tcp;
    SocketOptions {
        socket: Some(mapped::kind_of(socket)),
        send_buffer: to_bytes(socket.send_buffer_size()),
        receive_buffer: to_bytes(socket.recv_buffer_size()),
        nodelay: if is_tcp { socket.tcp_nodelay().ok() } else { None },
        ..sys::options(socket, family, is_tcp)
    }
}

fn to_bytes(size: io::Result<usize>) -> Option<u32> {
    u32::try_from(size.ok()?).ok()
}

trait Named<T> {
    fn name_option(self, option: &str, value: &dyn Display) -> io::Result<T>;
}

impl<T> Named<T> for io::Result<T> {
    fn name_option(self, option: &str, value: &dyn Display) -> io::Result<T> {
        self.map_err(|error| io::Error::new(error.kind(), format!("{option} cannot be {value}: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::receiver::Receiver;
    use crate::engine::sender;
    use crate::fixtures;
    use stacklab_model::{Endpoint, Length, Probe, SocketKind};

    fn spec(family: Family, transport: Transport, probe: Probe) -> TrialSpec {
        let mut spec = fixtures::spec(family, transport);
        spec.probe.probe = probe;
        spec.probe.length = Length::Packets(5);
        *spec.tuning = Tuning {
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
    fn socket_options_take_effect_on_both_hosts() {
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
    fn mapped_addresses_carry_ipv4() {
        let family = Family::Ipv4;
        for transport in Transport::ALL.iter().copied() {
            for probe in [Probe::Stream, Probe::Echo, Probe::Connect] {
                if !probe.supports(transport) {
                    continue;
                }
                let mut spec = spec(family, transport, probe);
                spec.tuning.socket = Some(SocketKind::Ipv4Mapped);
                let receiver = Receiver::listen(spec.clone(), family.loopback()).unwrap();
                let sender = sender::run(&spec, family.loopback(), receiver.address).unwrap();
                let receiver = receiver.collect().unwrap();
                assert_eq!(receiver.received.measured, 5, "{transport} {probe}");
                for side in [&sender, &receiver] {
                    let Endpoint { family: observed, local, options, .. } = &side.endpoint;
                    assert_eq!((*observed, local.ip()), (family, family.loopback()), "{probe}, {side:?}");
                    assert_eq!(options.socket, Some(SocketKind::Ipv4Mapped));
                    assert_eq!(options.dscp, Some(46), "{probe}, {side:?}");
                }
                assert_eq!(sender.endpoint.peer.ip(), family.loopback());
            }
        }
    }

    #[test]
    fn flow_label_0_is_none_and_not_the_kernels_choice() {
        let mut spec = spec(Family::Ipv6, Transport::Udp, Probe::Stream);
        for (asked, observed) in [(None, None), (Some(0), Some(0))] {
            spec.tuning.flow_label = asked;
            let receiver = Receiver::listen(spec.clone(), spec.family.loopback()).unwrap();
            let sender = sender::run(&spec, spec.family.loopback(), receiver.address).unwrap();
            receiver.collect().unwrap();
            assert_eq!(sender.endpoint.options.flow_label, observed);
        }
    }

    #[test]
    fn a_refused_option_is_named() {
        let mut spec = spec(Family::Ipv4, Transport::Tcp, Probe::Stream);
        spec.tuning.congestion_control = Some("no_such".into());
        let refused = Receiver::listen(spec, Family::Ipv4.loopback()).err().unwrap().to_string();
        assert!(refused.contains("TCP_CONGESTION cannot be no_such"), "{refused}");
    }
}
