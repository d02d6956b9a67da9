//! Options of a stack's sockets, and what is known of their connections.

use crate::sys::SocketOption;
use crate::sys::stack::lacks;
use crate::sys::stack::slot::{SlotSettings, SlotState};
use crate::sys::stack::socket::StackSocket;
use smoltcp::socket::tcp::CongestionControl;
use smoltcp::socket::{tcp, udp};
use stacklab_model::{Family, Offloads, SocketOptions, TcpInfo, Transport};
use std::io;

/// The timestamps of a segment.
const TCP_OPTION_BYTES: u32 = 12;

const CONTROLS: [(&str, CongestionControl); 3] = [
    ("cubic", CongestionControl::Cubic),
    ("reno", CongestionControl::Reno),
    ("none", CongestionControl::None),
];

impl StackSocket {
    pub(crate) fn set(&self, option: SocketOption<'_>) -> io::Result<()> {
        match option {
            SocketOption::SendBuffer(bytes) => self.set_buffer(|settings| &mut settings.send_buffer, bytes),
            SocketOption::ReceiveBuffer(bytes) => {
                self.set_buffer(|settings| &mut settings.receive_buffer, bytes)
            }
            SocketOption::CongestionControl(name) => {
                let Some((_, control)) = CONTROLS.iter().find(|(known, _)| *known == name) else {
                    let names = CONTROLS.map(|(name, _)| name).join(", ");
                    let text = format!("smoltcp has {names}");
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
                };
                self.stack.lock().slot(self.key).settings.congestion_control = *control;
                Ok(())
            }
            SocketOption::WholeMessages(bytes) => {
                let mut state = self.stack.lock();
                let settings = &mut state.slot(self.key).settings;
                settings.send_buffer = (settings.send_buffer / bytes).max(1) * bytes;
                settings.receive_buffer = settings.receive_buffer.max(bytes);
                settings.whole_message = bytes;
                Ok(())
            }
            // What it does anyway.
            SocketOption::NoFlowLabel | SocketOption::TrafficClass(_, 0) | SocketOption::BusyPoll(0) => {
                Ok(())
            }
            SocketOption::Mss(_) => Err(lacks("maximum segment size to set: it follows the link's MTU")),
            SocketOption::TrafficClass(..) => Err(lacks("traffic class")),
            SocketOption::BusyPoll(_) => Err(lacks("busy polling")),
            SocketOption::Device(_) => Err(lacks("sockets of an interface")),
            SocketOption::FlowLabel(..) | SocketOption::ReflectFlowLabel => Err(lacks("flow labels")),
            SocketOption::Pacing { .. } => Err(lacks("pacing")),
            SocketOption::RxTimestamps => Err(lacks("receive timestamps")),
            SocketOption::TxTimestamps => Err(lacks("transmit timestamps")),
            SocketOption::RxTtl(_) => Err(lacks("TTL of datagrams")),
            SocketOption::Gso(_) => Err(lacks("GSO")),
            SocketOption::Gro => Err(lacks("GRO")),
            SocketOption::Zerocopy => Err(lacks("zerocopy sends")),
        }
    }

    /// A buffer's size is fixed when the socket begins to be used; a smaller one than it has is then as good.
    fn set_buffer(&self, choose: fn(&mut SlotSettings) -> &mut usize, bytes: usize) -> io::Result<()> {
        let mut state = self.stack.lock();
        let slot = state.slot(self.key);
        let is_used = !matches!(slot.state, SlotState::Opened);
        let size = choose(&mut slot.settings);
        if is_used && bytes > *size {
            return Err(lacks("way to enlarge the buffer of a socket that is in use"));
        }
        if !is_used {
            *size = bytes.max(1);
        }
        Ok(())
    }

    pub(crate) fn buffers(&self) -> (usize, usize) {
        let mut state = self.stack.lock();
        let settings = &state.slot(self.key).settings;
        (settings.send_buffer, settings.receive_buffer)
    }

    pub(crate) fn set_nodelay(&self, nodelay: bool) {
        let mut state = self.stack.lock();
        state.slot(self.key).settings.nodelay = nodelay;
        if let Some(handle) = state.connection(self.key) {
            state.sockets.get_mut::<tcp::Socket>(handle).set_nagle_enabled(!nodelay);
            state.send_packets();
        }
    }

    pub(crate) fn nodelay(&self) -> bool {
        self.stack.lock().slot(self.key).settings.nodelay
    }

    pub(crate) fn congestion_control(&self) -> Option<String> {
        let control = self.stack.lock().slot(self.key).settings.congestion_control;
        CONTROLS.iter().find(|(_, known)| *known == control).map(|(name, _)| (*name).to_owned())
    }

    pub(crate) fn options(&self) -> SocketOptions {
        let headers = self.family.header_bytes() + Transport::Tcp.header_bytes() + TCP_OPTION_BYTES;
        let is_tcp = self.transport == Transport::Tcp;
        SocketOptions {
            mss: is_tcp.then(|| self.stack.config.mtu.saturating_sub(headers)),
            dscp: Some(0),
            busy_poll_us: Some(0),
            flow_label: (self.family == Family::Ipv6).then_some(0),
            ..SocketOptions::default()
        }
    }

    pub(crate) fn mtu(&self) -> u32 {
        self.stack.config.mtu
    }

    /// Nothing is offloaded: each packet passes the link's end by itself.
    pub(crate) fn offloads(&self) -> Offloads {
        Offloads { tso: Some(false), gso: Some(false), gro: Some(false), lro: Some(false) }
    }

    /// What a connection has sent, as counted at the link's end.
    pub(crate) fn tcp_info(&self) -> io::Result<TcpInfo> {
        if self.transport != Transport::Tcp {
            return Err(lacks("state of a connection for datagrams"));
        }
        let mut state = self.stack.lock();
        let slot = state.slot(self.key);
        let ends = slot.local.zip(slot.peer).ok_or(io::ErrorKind::NotConnected)?;
        let sent = state.end.counters.sent_segments(ends);
        Ok(TcpInfo {
            snd_mss: self.options().mss.map(u64::from),
            rtt_us: None,
            snd_cwnd: None,
            total_retrans: Some(sent.segments_again),
            data_segs_out: Some(sent.segments),
            data_segs_in: None,
            bytes_sent: Some(sent.bytes),
            bytes_retrans: Some(sent.bytes_again),
            min_rtt_us: None,
            srtt_mean_us: None,
        })
    }

    /// Bytes of datagrams that have not left the link's queue, or of a stream that have not been acknowledged. Moves
    /// packets: nobody else may do so.
    pub(crate) fn unsent_bytes(&self) -> u32 {
        let mut state = self.stack.lock();
        state.move_packets();
        self.stack.wake_ready(&mut state);
        let bytes = match state.slot(self.key).state {
            SlotState::Connection { handle, .. } => state.sockets.get::<tcp::Socket>(handle).send_queue(),
            SlotState::Datagrams { handle, .. } => {
                state.sockets.get::<udp::Socket>(handle).send_queue() + state.end.unsent_bytes()
            }
            SlotState::Opened | SlotState::Listening { .. } => 0,
        };
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }

    /// Datagrams that arrived for this socket's port and that its buffer had no room for. Drops what waits in it.
    pub(crate) fn drops(&self) -> io::Result<u64> {
        let mut state = self.stack.lock();
        let slot = state.slot(self.key);
        if !matches!(slot.state, SlotState::Datagrams { .. }) {
            return Err(lacks("drop counter for connections"));
        }
        let port = slot.local.map_or(0, |local| local.port());
        while state.receive_datagram(self.key, &mut []).is_ok() {}
        let SlotState::Datagrams { taken, .. } = state.slot(self.key).state else { return Ok(0) };
        Ok(state.end.counters.datagrams_for(self.family, port).saturating_sub(taken))
    }
}
