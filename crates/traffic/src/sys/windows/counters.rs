//! Counters of the network stack: of an interface, and of the whole host by protocol and family.
//!
//! They have the same names as on Linux if they count the same. TCP is counted by family here: `tcp` is IPv4.

use super::interfaces::row;
use std::collections::BTreeMap;
use windows_sys::Win32::Foundation::NO_ERROR;
use windows_sys::Win32::NetworkManagement::IpHelper::{
    GetIpStatisticsEx, GetTcpStatisticsEx, GetUdpStatisticsEx, MIB_IPSTATS_LH, MIB_TCPSTATS_LH, MIB_UDPSTATS,
};
use windows_sys::Win32::Networking::WinSock::{AF_INET, AF_INET6};

pub(crate) fn counters(interface: &str) -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    let mut note = |group: &str, named: &[(&str, u64)]| {
        counters.extend(named.iter().map(|(name, value)| (format!("{group}.{name}"), *value)));
    };
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
        note("interface", &named);
    }
    for (family, suffix) in [(AF_INET, ""), (AF_INET6, "6")] {
        if let Some(ip) = filled(GetIpStatisticsEx, family) {
            let MIB_IPSTATS_LH { dwInReceives, dwInDelivers, dwInDiscards, dwOutRequests, .. } = ip;
            let named = [
                ("InReceives", dwInReceives),
                ("InDelivers", dwInDelivers),
                ("InDiscards", dwInDiscards),
                ("OutRequests", dwOutRequests),
                ("OutDiscards", ip.dwOutDiscards),
                ("ReasmReqds", ip.dwReasmReqds),
                ("ReasmOKs", ip.dwReasmOks),
                ("ReasmFails", ip.dwReasmFails),
                ("FragOKs", ip.dwFragOks),
                ("FragFails", ip.dwFragFails),
                ("FragCreates", ip.dwFragCreates),
            ];
            note(&format!("ip{suffix}"), &named.map(|(name, value)| (name, value.into())));
        }
        if let Some(udp) = filled(GetUdpStatisticsEx, family) {
            let MIB_UDPSTATS { dwInDatagrams, dwNoPorts, dwInErrors, dwOutDatagrams, .. } = udp;
            let named = [
                ("InDatagrams", dwInDatagrams),
                ("NoPorts", dwNoPorts),
                ("InErrors", dwInErrors),
                ("OutDatagrams", dwOutDatagrams),
            ];
            note(&format!("udp{suffix}"), &named.map(|(name, value)| (name, value.into())));
        }
        if let Some(tcp) = filled(GetTcpStatisticsEx, family) {
            let MIB_TCPSTATS_LH { dwActiveOpens, dwPassiveOpens, dwAttemptFails, dwEstabResets, .. } = tcp;
            let named = [
                ("ActiveOpens", dwActiveOpens),
                ("PassiveOpens", dwPassiveOpens),
                ("AttemptFails", dwAttemptFails),
                ("EstabResets", dwEstabResets),
                ("InSegs", tcp.dwInSegs),
                ("OutSegs", tcp.dwOutSegs),
                ("RetransSegs", tcp.dwRetransSegs),
                ("InErrs", tcp.dwInErrs),
                ("OutRsts", tcp.dwOutRsts),
            ];
            note(&format!("tcp{suffix}"), &named.map(|(name, value)| (name, value.into())));
        }
    }
    counters
}

/// Statistics of a family, filled by one of these calls; `None` on failure.
fn filled<T: Default>(call: unsafe extern "system" fn(*mut T, u32) -> u32, family: u16) -> Option<T> {
    let mut statistics = T::default();
    // SAFETY: each of these calls fills the one structure that its signature names, which outlives it.
    let result = unsafe { call(&raw mut statistics, family.into()) };
    (result == NO_ERROR).then_some(statistics)
}
