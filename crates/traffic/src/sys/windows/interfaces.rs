//! This host's interfaces (GetAdaptersAddresses), and counters of one of them and of the whole host by protocol and
//! family.
//!
//! Counters have the same names as on Linux if they count the same. TCP is counted by family here: `tcp` is IPv4.

use socket2::Socket;
use stacklab_model::ScopedAddr;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::windows::ffi::OsStringExt;
use windows_sys::Win32::Foundation::{ERROR_BUFFER_OVERFLOW, ERROR_NO_DATA, NO_ERROR};
use windows_sys::Win32::NetworkManagement::IpHelper::{
    GAA_FLAG_SKIP_ANYCAST, GAA_FLAG_SKIP_DNS_SERVER, GAA_FLAG_SKIP_MULTICAST, GetAdaptersAddresses,
    GetIfEntry2, GetIpStatisticsEx, GetTcpStatisticsEx, GetUdpStatisticsEx, IP_ADAPTER_ADDRESSES_LH,
    MIB_IF_ROW2,
};
use windows_sys::Win32::NetworkManagement::Ndis::NET_LUID_LH;
use windows_sys::Win32::Networking::WinSock::{
    AF_INET, AF_INET6, AF_UNSPEC, SOCKADDR_IN, SOCKADDR_IN6, SOCKET_ADDRESS,
};

/// Initial buffer size, in words of eight bytes; Windows recommends 15 KB.
const WORDS: usize = 2048;
/// Maximum number of attempts if the buffer is too small.
const ATTEMPTS: usize = 5;

struct Interface {
    name: String,
    addresses: Vec<ScopedAddr>,
    mtu: u32,
    /// 0 if it has no IPv6.
    index: u32,
    id: NET_LUID_LH,
}

pub(crate) fn interface_of(address: SocketAddr) -> io::Result<Option<String>> {
    let address = ScopedAddr::from(address);
    let found = all()?.into_iter().find(|interface| interface.addresses.contains(&address));
    Ok(found.map(|interface| interface.name))
}

pub(crate) fn interface_indices() -> io::Result<Vec<(u32, String)>> {
    let with_ipv6 = all()?.into_iter().filter(|interface| interface.index > 0);
    let mut all: Vec<(u32, String)> = with_ipv6.map(|interface| (interface.index, interface.name)).collect();
    all.sort();
    Ok(all)
}

pub(crate) fn interface_mtu(_socket: &Socket, interface: &str) -> io::Result<u32> {
    Ok(called(interface)?.mtu)
}

/// Counters of an interface; `None` if unknown.
fn row(interface: &str) -> Option<MIB_IF_ROW2> {
    let mut row = MIB_IF_ROW2 { InterfaceLuid: called(interface).ok()?.id, ..MIB_IF_ROW2::default() };
    // SAFETY: the call reads the interface's id from the structure and fills it; it outlives the call.
    let result = unsafe { GetIfEntry2(&raw mut row) };
    (result == NO_ERROR).then_some(row)
}

fn called(name: &str) -> io::Result<Interface> {
    let found = all()?.into_iter().find(|interface| interface.name == name);
    found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("no interface is called {name}")))
}

fn all() -> io::Result<Vec<Interface>> {
    let flags = GAA_FLAG_SKIP_ANYCAST | GAA_FLAG_SKIP_MULTICAST | GAA_FLAG_SKIP_DNS_SERVER;
    let mut room = vec![0_u64; WORDS];
    for _ in 0..ATTEMPTS {
        let mut bytes = size_of_val(&room[..]) as u32;
        // SAFETY: the call writes at most `bytes` bytes to the buffer, which is that large and aligned for its
        // structures, and one integer; both outlive it.
        let result = unsafe {
            let list = room.as_mut_ptr().cast::<IP_ADAPTER_ADDRESSES_LH>();
            GetAdaptersAddresses(AF_UNSPEC.into(), flags, std::ptr::null(), list, &raw mut bytes)
        };
        match result {
            // SAFETY: the call filled the buffer with a list whose pointers point into the buffer, which is kept
            // until the list has been read.
            NO_ERROR => return Ok(unsafe { read(room.as_ptr().cast()) }),
            ERROR_NO_DATA => return Ok(Vec::new()),
            ERROR_BUFFER_OVERFLOW => room.resize((bytes as usize).div_ceil(size_of::<u64>()) + WORDS, 0),
            error => return Err(io::Error::from_raw_os_error(error as i32)),
        }
    }
    Err(io::Error::other("the list of interfaces keeps growing"))
}

/// Reads a list of interfaces.
///
/// # Safety
/// The list is as GetAdaptersAddresses returns it: every pointer is null or valid for its type.
unsafe fn read(mut next: *const IP_ADAPTER_ADDRESSES_LH) -> Vec<Interface> {
    let mut found = Vec::new();
    // SAFETY: as the caller promises.
    unsafe {
        while let Some(adapter) = next.as_ref() {
            let mut addresses = Vec::new();
            let zone = adapter.Ipv6IfIndex.to_string();
            let mut unicast = adapter.FirstUnicastAddress;
            while let Some(entry) = unicast.as_ref() {
                let found = address(&entry.Address);
                addresses.extend(found.map(|ip| ScopedAddr::new(ip, Some(&zone))));
                unicast = entry.Next;
            }
            let name = text(adapter.FriendlyName);
            let mtu = adapter.Mtu;
            let index = adapter.Ipv6IfIndex;
            found.push(Interface { name, addresses, mtu, index, id: adapter.Luid });
            next = adapter.Next;
        }
    }
    found
}

/// # Safety
/// The pointer is null or points to text that ends with a zero.
unsafe fn text(start: *const u16) -> String {
    if start.is_null() {
        return String::new();
    }
    // SAFETY: as the caller promises, everything up to the zero may be read.
    let units = unsafe {
        let length = (0..).take_while(|at| *start.add(*at) != 0).count();
        std::slice::from_raw_parts(start, length)
    };
    OsString::from_wide(units).to_string_lossy().into_owned()
}

/// # Safety
/// The pointer is null or points to a socket address of the stated family.
unsafe fn address(socket: &SOCKET_ADDRESS) -> Option<IpAddr> {
    let start = socket.lpSockaddr;
    // SAFETY: as the caller promises; every member of the unions consists of plain bytes.
    unsafe {
        match start.as_ref()?.sa_family {
            AF_INET => {
                let found = start.cast::<SOCKADDR_IN>().read_unaligned();
                Some(Ipv4Addr::from(found.sin_addr.S_un.S_addr.to_ne_bytes()).into())
            }
            AF_INET6 => {
                let found = start.cast::<SOCKADDR_IN6>().read_unaligned();
                Some(Ipv6Addr::from(found.sin6_addr.u.Byte).into())
            }
            _ => None,
        }
    }
}

pub(crate) fn counters(interface: &str) -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    if let Some(row) = row(interface) {
        let named = [
            ("rx_bytes", row.InOctets),
            ("rx_packets", row.InUcastPkts + row.InNUcastPkts),
            ("rx_errors", row.InErrors),
            ("rx_dropped", row.InDiscards),
            ("tx_bytes", row.OutOctets),
            ("tx_packets", row.OutUcastPkts + row.OutNUcastPkts),
            ("tx_errors", row.OutErrors),
            ("tx_dropped", row.OutDiscards),
        ];
        note(&mut counters, "interface", &named);
    }
    for (family, suffix) in [(AF_INET, ""), (AF_INET6, "6")] {
        note_ip(&mut counters, family, suffix);
        note_udp(&mut counters, family, suffix);
        note_tcp(&mut counters, family, suffix);
    }
    counters
}

/// Adds counters as `GROUP.NAME`.
fn note<T: Copy + Into<u64>>(counters: &mut BTreeMap<String, u64>, group: &str, named: &[(&str, T)]) {
    counters.extend(named.iter().map(|(name, value)| (format!("{group}.{name}"), (*value).into())));
}

fn note_ip(counters: &mut BTreeMap<String, u64>, family: u16, suffix: &str) {
    let Some(ip) = filled(GetIpStatisticsEx, family) else { return };
    let named = [
        ("InReceives", ip.dwInReceives),
        ("InDelivers", ip.dwInDelivers),
        ("InDiscards", ip.dwInDiscards),
        ("OutRequests", ip.dwOutRequests),
        ("OutDiscards", ip.dwOutDiscards),
        ("ReasmReqds", ip.dwReasmReqds),
        ("ReasmOKs", ip.dwReasmOks),
        ("ReasmFails", ip.dwReasmFails),
        ("FragOKs", ip.dwFragOks),
        ("FragFails", ip.dwFragFails),
        ("FragCreates", ip.dwFragCreates),
    ];
    note(counters, &format!("ip{suffix}"), &named);
}

fn note_udp(counters: &mut BTreeMap<String, u64>, family: u16, suffix: &str) {
    let Some(udp) = filled(GetUdpStatisticsEx, family) else { return };
    let named = [
        ("InDatagrams", udp.dwInDatagrams),
        ("NoPorts", udp.dwNoPorts),
        ("InErrors", udp.dwInErrors),
        ("OutDatagrams", udp.dwOutDatagrams),
    ];
    note(counters, &format!("udp{suffix}"), &named);
}

fn note_tcp(counters: &mut BTreeMap<String, u64>, family: u16, suffix: &str) {
    let Some(tcp) = filled(GetTcpStatisticsEx, family) else { return };
    let named = [
        ("ActiveOpens", tcp.dwActiveOpens),
        ("PassiveOpens", tcp.dwPassiveOpens),
        ("AttemptFails", tcp.dwAttemptFails),
        ("EstabResets", tcp.dwEstabResets),
        ("InSegs", tcp.dwInSegs),
        ("OutSegs", tcp.dwOutSegs),
        ("RetransSegs", tcp.dwRetransSegs),
        ("InErrs", tcp.dwInErrs),
        ("OutRsts", tcp.dwOutRsts),
    ];
    note(counters, &format!("tcp{suffix}"), &named);
}

/// Statistics of a family, filled by one of these calls; `None` on failure.
fn filled<T: Default>(call: unsafe extern "system" fn(*mut T, u32) -> u32, family: u16) -> Option<T> {
    let mut statistics = T::default();
    // SAFETY: each of these calls fills the one structure that its signature names, which outlives it.
    let result = unsafe { call(&raw mut statistics, family.into()) };
    (result == NO_ERROR).then_some(statistics)
}
