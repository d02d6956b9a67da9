//! Packets captured by tcpdump on a host's interface: an independent check that shares no code with the program.

use super::program::{children, require_tool, signal};
use stacklab_model::{Family, Transport};
use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// How long tcpdump may take to begin or to end.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time from the kernel's buffer to tcpdump after the last packet.
const DRAIN: Duration = Duration::from_millis(300);
/// Captured bytes per packet. Every header fits, and lengths come from the headers.
const KEPT_BYTES: &str = "128";
/// Size of tcpdump's kernel buffer, KiB.
const BUFFER_KIB: &str = "65536";

/// A running tcpdump.
pub(crate) struct Capture {
    tcpdump: Child,
    file: PathBuf,
    log: PathBuf,
    /// The time from which every packet is captured.
    pub listening: SystemTime,
}

impl Capture {
    /// Captures on an interface in the network namespace of a process; its files go into a folder.
    pub(crate) fn start(pid: u32, interface: &str, folder: &Path) -> Self {
        require_tool("tcpdump", "tcpdump");
        require_tool("nsenter", "util-linux");
        let file = folder.join("capture.pcap");
        let log = folder.join("tcpdump.log");
        let mut command = Command::new("nsenter");
        command.args(["-t", &pid.to_string(), "-n", "tcpdump", "-i", interface, "-Z", "root", "-n"]);
        command.args(["-B", BUFFER_KIB, "-s", KEPT_BYTES, "--immediate-mode", "-w"]).arg(&file);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&log).unwrap());
        let mut tcpdump = command.spawn().unwrap();
        let start = Instant::now();
        while !read_log(&log).contains("listening on") {
            assert!(tcpdump.try_wait().unwrap().is_none(), "tcpdump ended: {}", read_log(&log));
            assert!(start.elapsed() < TIMEOUT, "tcpdump does not listen: {}", read_log(&log));
            std::thread::sleep(Duration::from_millis(1));
        }
        Capture { tcpdump, file, log, listening: SystemTime::now() }
    }

    /// Ends the capture. Returns the TCP and UDP packets in order; fails if the kernel dropped any.
    pub(crate) fn stop(mut self) -> Vec<Packet> {
        std::thread::sleep(DRAIN);
        signal(self.tcpdump.id(), "INT");
        let start = Instant::now();
        while self.tcpdump.try_wait().unwrap().is_none() {
            assert!(start.elapsed() < TIMEOUT, "tcpdump does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
        let log = read_log(&self.log);
        assert!(log.contains("\n0 packets dropped by kernel"), "tcpdump has not seen every packet:\n{log}");
        let packets = parse(&fs::read(&self.file).unwrap());
        packets.unwrap_or_else(|| panic!("{} is not a whole capture of Ethernet", self.file.display()))
    }
}

/// The process of the host with this IPv6 address, as /proc writes it, after its interface exists.
pub(crate) fn find_host(program: u32, address: &str, mut still_running: impl FnMut()) -> u32 {
    let start = Instant::now();
    loop {
        for pid in children(program) {
            if lists(pid, "net/dev", "st0:") && lists(pid, "net/if_inet6", address) {
                return pid;
            }
        }
        still_running();
        assert!(start.elapsed() < Duration::from_secs(30), "no host of {program} has {address}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Whether a file of a process in /proc contains a text.
fn lists(pid: u32, file: &str, text: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/{file}")).is_ok_and(|listed| listed.contains(text))
}

impl Drop for Capture {
    fn drop(&mut self) {
        // A failed test leaves nothing running.
        let _ = self.tcpdump.kill();
        let _ = self.tcpdump.wait();
    }
}

fn read_log(log: &Path) -> String {
    fs::read_to_string(log).unwrap()
}

/// A TCP or UDP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Packet {
    /// By its Ethernet type.
    pub family: Family,
    /// By its IP header.
    pub transport: Transport,
    /// Where it comes from.
    pub source: SocketAddr,
    /// Where it goes.
    pub destination: SocketAddr,
    /// Bytes of TCP or UDP payload, by the lengths in the headers.
    pub payload: usize,
}

/// The TCP and UDP packets of a capture file (the classic format of libpcap, Ethernet); `None` if it is not such a
/// file.
pub(crate) fn parse(file: &[u8]) -> Option<Vec<Packet>> {
    // The file has this machine's byte order; the second number is the magic number for nanosecond timestamps.
    const MAGIC: [u32; 2] = [0xa1b2_c3d4, 0xa1b2_3c4d];
    const ETHERNET: u32 = 1;
    if !MAGIC.contains(&read_word(file, 0)?) || read_word(file, 20)? & 0xffff != ETHERNET {
        return None;
    }
    let mut packets = Vec::new();
    let mut at = 24;
    while at < file.len() {
        let kept = read_word(file, at + 8)? as usize;
        let frame = file.get(at + 16..at + 16 + kept)?;
        packets.extend(packet(frame));
        at += 16 + kept;
    }
    Some(packets)
}

/// A number of four bytes in this machine's byte order.
fn read_word(file: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(file.get(at..at + 4)?.try_into().ok()?))
}

/// Parses a packet from the beginning of its frame; `None` for anything but whole TCP and UDP over IP.
fn packet(frame: &[u8]) -> Option<Packet> {
    let ip = frame.get(14..)?;
    let (family, version) = match frame.get(12..14)? {
        [0x08, 0x00] => (Family::Ipv4, 4),
        [0x86, 0xdd] => (Family::Ipv6, 6),
        _ => return None,
    };
    assert_eq!(
        ip.first()? >> 4,
        version,
        "an Ethernet type of {family} with an IP header of another version"
    );
    let (header, total, protocol, addresses): (usize, usize, u8, [IpAddr; 2]) = match family {
        Family::Ipv4 => {
            let is_fragment = read_short(ip, 6)? & 0x3fff != 0;
            if is_fragment {
                return None;
            }
            let addresses = [read_ipv4(ip, 12)?, read_ipv4(ip, 16)?];
            (usize::from(ip[0] & 15) * 4, read_short(ip, 2)?.into(), *ip.get(9)?, addresses)
        }
        Family::Ipv6 => {
            let addresses = [read_ipv6(ip, 8)?, read_ipv6(ip, 24)?];
            (40, 40 + usize::from(read_short(ip, 4)?), *ip.get(6)?, addresses)
        }
    };
    let segment = ip.get(header..)?;
    let (transport, transport_header) = match protocol {
        6 => (Transport::Tcp, usize::from(segment.get(12)? >> 4) * 4),
        17 => (Transport::Udp, 8),
        _ => return None,
    };
    Some(Packet {
        family,
        transport,
        source: SocketAddr::new(addresses[0], read_short(segment, 0)?),
        destination: SocketAddr::new(addresses[1], read_short(segment, 2)?),
        payload: total.checked_sub(header + transport_header)?,
    })
}

/// A number of two bytes in network byte order.
fn read_short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

fn read_ipv4(ip: &[u8], at: usize) -> Option<IpAddr> {
    let bytes: [u8; 4] = ip.get(at..at + 4)?.try_into().ok()?;
    Some(Ipv4Addr::from(bytes).into())
}

fn read_ipv6(ip: &[u8], at: usize) -> Option<IpAddr> {
    let bytes: [u8; 16] = ip.get(at..at + 16)?.try_into().ok()?;
    Some(Ipv6Addr::from(bytes).into())
}
