//! `stacklab path` with resolvers that are wrong in their answers for AAAA.

use super::{Scene, first};
use crate::support;

use stacklab_model::Family;
use stacklab_testbed::in_namespace;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::thread;
use support::program::{Outcome, code};
use support::tun::{Faults, address};

/// A resolver whose answer for AAAA depends on the name: `silent.test`, `servfail.test`, `mapped.test`, `cut.test`
/// (truncated, and closes over TCP) and `whole.test` (truncated, and right over TCP).
fn odd_resolver(scene: &Scene) -> IpAddr {
    let at = SocketAddr::new(address(Family::Ipv4, 1), 53);
    let bound = in_namespace(scene.testbed.hosts()[1].pid(), move || {
        Ok::<_, std::io::Error>((UdpSocket::bind(at)?, TcpListener::bind(at)?))
    });
    let (datagrams, streams) = bound.unwrap().unwrap();
    let (IpAddr::V4(four), IpAddr::V6(six)) = (scene.link(Family::Ipv4), scene.link(Family::Ipv6)) else {
        panic!("the link has an address of each family")
    };
    let four = four.octets();
    let six = six.octets();
    thread::spawn(move || {
        let mut room = [0; 512];
        while let Ok((length, from)) = datagrams.recv_from(&mut room) {
            let query = &room[..length];
            let mapped = Ipv4Addr::new(192, 0, 2, 1).to_ipv6_mapped().octets();
            let answer = match (query[length - 3], &query[13..16]) {
                (1, _) => dns(query, 0, &four),
                (_, b"sil") => continue,
                (_, b"ser") => dns(query, 2, &[]),
                (_, b"map") => dns(query, 0, &mapped),
                _ => dns(query, 0x200, &[]),
            };
            let _ = datagrams.send_to(&answer, from);
        }
    });
    thread::spawn(move || {
        use std::io::{Read, Write};
        for mut stream in streams.incoming().flatten() {
            let mut room = [0; 512];
            let length = stream.read(&mut room).unwrap_or(0);
            if length > 18 && &room[15..18] == b"who" {
                let answer = dns(&room[2..length], 0, &six);
                let _ = stream.write_all(&[&(answer.len() as u16).to_be_bytes(), &answer[..]].concat());
            }
        }
    });
    at.ip()
}

/// An answer with these flags, and an address if there is one.
fn dns(query: &[u8], flags: u16, address: &[u8]) -> Vec<u8> {
    let [high, low] = (0x8180 | flags).to_be_bytes();
    let count = u8::from(!address.is_empty());
    let mut answer = [&query[..2], &[high, low, 0, 1, 0, count, 0, 0, 0, 0], &query[12..]].concat();
    if count == 1 {
        let kind = if address.len() == 4 { 1 } else { 28 };
        answer.extend([0xc0, 12, 0, kind, 0, 1, 0, 0, 0, 60, 0, address.len() as u8]);
        answer.extend(address);
    }
    answer
}

#[test]
fn silence_of_a_broken_resolver_is_no_absent_family() {
    let scene = Scene::set(Faults::default(), |_| Vec::new());
    let resolver = odd_resolver(&scene);
    for (name, state, reason) in [
        ("silent", "unresolved", "did not answer within 2 s"),
        ("servfail", "unresolved", "answers SERVFAIL"),
        ("cut", "unresolved", "sent a truncated response, and over TCP"),
        ("mapped", "absent", "is an IPv4 address (::ffff:192.0.2.1)"),
    ] {
        let outcome = run_path(&scene, resolver, name, "-n 1 --format json").expect(9);
        let families = &first(&outcome)["families"];
        assert_eq!(families["ipv4"]["state"], "works", "{name}: {outcome}");
        assert_eq!(families["ipv6"]["state"], state, "{name}: {outcome}");
        assert!(families["ipv6"]["reason"].as_str().unwrap().contains(reason), "{name}: {outcome}");
    }
    // For people, a family's reason is there once, not for each of its metrics.
    let text = run_path(&scene, resolver, "mapped", "-n 1").expect(9);
    assert_eq!(text.stdout.matches("is an IPv4 address").count(), 1, "{text}");
    let whole = first(&run_path(&scene, resolver, "whole", "-n 1 --format json").expect(code::DONE));
    assert_eq!(whole["families"]["ipv6"]["state"], "works", "{whole:#}");
    // An address needs no resolver.
    let six = scene.link(Family::Ipv6);
    let outcome = Outcome::of(
        scene.command(0, &format!("\"$STACKLAB\" path 'http://[{six}]/' --pps 100 -n 1 --format json")),
    );
    let families = &first(&outcome.expect(9))["families"];
    assert_eq!((&families["ipv6"]["state"], &families["ipv4"]["state"]), (&"works".into(), &"absent".into()));
}

/// `stacklab path` to a name of this resolver.
fn run_path(scene: &Scene, resolver: IpAddr, name: &str, words: &str) -> Outcome {
    let words = format!("path http://{name}.test --resolver {resolver} --pps 100 {words}");
    Outcome::of(scene.command(0, &format!("\"$STACKLAB\" {words}")))
}
