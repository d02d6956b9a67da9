//! Kernel functions that do the same for IPv4 and for IPv6.

use std::collections::BTreeMap;

/// Joins the functions of IPv6 with those of IPv4 that do the same; all others stay alone.
pub(crate) fn paired(functions: Vec<(String, usize)>) -> Vec<(String, Vec<usize>)> {
    // A name may be that of several functions.
    let mut places: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    functions.into_iter().for_each(|(name, place)| places.entry(name).or_default().push(place));
    let pairs: Vec<[String; 2]> = places
        .keys()
        .filter_map(|name| {
            let twin = ipv4_names(name).into_iter().find(|twin| places.contains_key(twin))?;
            Some([twin, name.clone()])
        })
        .collect();
    for [ipv4, ipv6] in pairs {
        // An IPv4 function has one twin at most.
        let (Some(mut both), Some(more)) = (places.remove(&ipv4), places.get(&ipv6).cloned()) else {
            continue;
        };
        both.extend(more);
        places.remove(&ipv6);
        places.insert(format!("{ipv4} / {ipv6}"), both);
    }
    places.into_iter().collect()
}

/// IPv6 functions whose IPv4 twin has another name.
const IRREGULAR: [[&str; 2]; 2] =
    [["ip6_input", "ip_local_deliver"], ["ip6_input_finish", "ip_local_deliver_finish"]];

/// What the IPv4 twin of an IPv6 function may be called, the likelier one first: `tcp_v4_rcv` of `tcp_v6_rcv`,
/// `ip_output` of `ip6_output`, `ipv4_mtu` of `ip6_mtu`, `udp_send_skb` of `udp_v6_send_skb`. None for other functions.
fn ipv4_names(ipv6: &str) -> Vec<String> {
    let name = |of: &dyn Fn(&str) -> Option<String>| {
        let words: Vec<String> =
            ipv6.split('_').map(|word| of(word).unwrap_or_else(|| word.to_owned())).collect();
        words.join("_")
    };
    let is_protocol = |word: &str| word.len() >= 2 && word.bytes().all(|byte| byte.is_ascii_lowercase());
    let numbered = name(&|word| {
        let rest = word.strip_suffix('6')?;
        (rest == "v" || is_protocol(rest)).then(|| format!("{rest}4"))
    });
    let plain = name(&|word| {
        let rest = word.strip_suffix("v6").filter(|rest| is_protocol(rest));
        rest.or_else(|| word.strip_suffix('6').filter(|rest| is_protocol(rest))).map(str::to_owned)
    });
    let version = name(&|word| (word == "ip6").then(|| "ipv4".to_owned()));
    let irregular = IRREGULAR.iter().filter(|[name, _]| *name == ipv6).map(|[_, twin]| (*twin).to_owned());
    [numbered, plain, version, ipv6.replacen("_v6_", "_", 1)]
        .into_iter()
        .chain(irregular)
        .filter(|twin| twin != ipv6)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_both_families_are_one_row() {
        let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).zip(0..).collect();
        let all = [
            "tcp_v4_rcv",
            "tcp_v6_rcv",
            "ip_rcv",
            "ipv6_rcv",
            "udpv6_sendmsg",
            "udp_sendmsg",
            "inet6_csk_xmit",
        ];
        let found = paired(named(&all));
        let expected = [
            ("inet6_csk_xmit", vec![6]),
            ("ip_rcv / ipv6_rcv", vec![2, 3]),
            ("tcp_v4_rcv / tcp_v6_rcv", vec![0, 1]),
            ("udp_sendmsg / udpv6_sendmsg", vec![5, 4]),
        ];
        assert_eq!(found, expected.map(|(name, places)| (name.to_owned(), places)));
        let unlike =
            [("ip6_mtu", "ipv4_mtu"), ("udp_v6_send_skb", "udp_send_skb"), ("ip6_input", "ip_local_deliver")];
        for (ipv6, ipv4) in unlike {
            assert_eq!(paired(named(&[ipv6, ipv4])), [(format!("{ipv4} / {ipv6}"), vec![1, 0])]);
        }
        // Both families call the one without a number.
        let shared =
            paired(named(&["udp_gro_receive", "udp4_gro_receive", "udp6_gro_receive", "crc16", "crc14"]));
        let names: Vec<&str> = shared.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["crc14", "crc16", "udp4_gro_receive / udp6_gro_receive", "udp_gro_receive"]);
    }
}
