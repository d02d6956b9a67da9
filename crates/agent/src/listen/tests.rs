//! Whom an agent counts, and what it announces.

use super::*;

#[test]
fn the_announcement_says_how_to_measure() {
    let any = announcement(&"".parse().unwrap(), "[::]:5202".parse().unwrap(), true);
    assert!(
        any.contains("[::]:5202 for any host") && any.contains("measure tcp HOST --tls FINGERPRINT`"),
        "{any}"
    );
    let one = announcement(&"::1".parse().unwrap(), "[::1]:7000".parse().unwrap(), false);
    assert!(one.contains("`stacklab measure tcp ::1 -p 7000`") && !one.contains("any host"), "{one}");
}

// Everywhere on Linux, interface 1 is loopback.
#[cfg(target_os = "linux")]
#[test]
fn the_announcement_of_a_link_local_place_has_no_zone() {
    for (text, port) in [("fe80::1%1", PORT), ("[fe80::1%1]:7000", 7000)] {
        let place: ListenAddress = text.parse().unwrap();
        let said = announcement(&place, format!("[fe80::1%1]:{port}").parse().unwrap(), false);
        assert!(said.contains(&format!("listening on [fe80::1%1]:{port}: `")), "{said}");
        assert!(said.contains("tcp fe80::1%INTERFACE") && said.contains("own interface"), "{said}");
    }
}

#[test]
fn connections_have_a_bound_in_all_and_for_each_network() {
    let agent = Arc::new(Agent::new(None, None, Vec::new()));
    let take =
        |address: String| ConnectionSlot::take(&agent, network_of(&address.parse::<ScopedAddr>().unwrap()));
    // A host has as many addresses of its network of IPv6 as it likes.
    let own: Vec<_> =
        (0..MOST_FROM_NETWORK).map(|number| take(format!("2001:db8:0:1::{number:x}"))).collect();
    assert!(own.iter().all(Option::is_some));
    assert!(take("2001:db8:0:1:ffff::1".to_owned()).is_none());
    let others: Vec<_> = (MOST_FROM_NETWORK..MOST_CONNECTIONS)
        .map(|number| take(format!("10.{}.{}.1", number / 100, number % 100)))
        .collect();
    assert!(others.iter().all(Option::is_some));
    assert!(take("10.9.0.2".to_owned()).is_none());
    drop(own);
    assert!(take("10.9.0.2".to_owned()).is_some() && take("2001:db8:0:1:ffff::1".to_owned()).is_some());
}
