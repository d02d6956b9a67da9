//! Interface data in addition to addresses (the link-layer entries of getifaddrs).

use socket2::Socket;
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::io;

/// MTU of an interface, bytes.
pub fn interface_mtu(_socket: &Socket, interface: &str) -> io::Result<u32> {
    let none = || io::Error::new(io::ErrorKind::NotFound, format!("no interface is called {interface}"));
    Ok(link(interface)?.ok_or_else(none)?.ifi_mtu)
}

/// Counters of an interface; empty without an interface of this name.
pub fn counters(interface: &str) -> BTreeMap<String, u64> {
    let Ok(Some(data)) = link(interface) else { return BTreeMap::new() };
    let named = [
        ("rx_bytes", data.ifi_ibytes),
        ("rx_packets", data.ifi_ipackets),
        ("rx_errors", data.ifi_ierrors),
        ("rx_dropped", data.ifi_iqdrops),
        ("tx_bytes", data.ifi_obytes),
        ("tx_packets", data.ifi_opackets),
        ("tx_errors", data.ifi_oerrors),
        ("tx_dropped", data.ifi_oqdrops),
    ];
    named.into_iter().map(|(name, value)| (format!("interface.{name}"), value)).collect()
}

fn link(interface: &str) -> io::Result<Option<libc::if_data>> {
    let mut list = std::ptr::null_mut();
    // SAFETY: the call writes one pointer, which outlives it.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut found = None;
    // SAFETY: the list is as getifaddrs returns it: names end with a zero, addresses are valid or null, and the data
    // of a link-layer entry is an `if_data`. It is freed once, after its last use.
    unsafe {
        let mut next = list;
        while let Some(entry) = next.as_ref() {
            let family = entry.ifa_addr.as_ref().map(|address| i32::from(address.sa_family));
            if family == Some(libc::AF_LINK)
                && CStr::from_ptr(entry.ifa_name).to_bytes() == interface.as_bytes()
                && !entry.ifa_data.is_null()
            {
                found = Some(entry.ifa_data.cast::<libc::if_data>().read_unaligned());
            }
            next = entry.ifa_next;
        }
        libc::freeifaddrs(list);
    }
    Ok(found)
}
