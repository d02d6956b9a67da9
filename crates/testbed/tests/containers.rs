//! Ways to a container on real testbeds: what a way counts, and what passes it. The tests need root, nft, docker-proxy,
//! pasta and slirp4netns. They fail if one is missing.

use stacklab_model::{Family, LinkConfig, Mechanism};
use stacklab_testbed::{Node, Routed, RoutedSpec, ends, in_namespace};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Command;

const PLAIN: LinkConfig = LinkConfig { rate: None, mtu: 1500, offloads: false };
const SENT: usize = 300_000;
const PORT: u16 = 5202;

fn build(mechanism: Mechanism) -> Routed {
    let spec = RoutedSpec::of_namespaces(mechanism, &PLAIN);
    // Options of agents follow, which it ignores.
    Routed::build(&spec, Path::new("sh"), &["-c", "cat"]).unwrap_or_else(|error| panic!("{error}"))
}

/// Sends bytes to the container, or from it, and returns those that its host has counted since.
fn send_to_container(routed: &mut Routed, family: Family) -> u64 {
    let ends = ends(routed.mechanism, family).unwrap();
    let before = routed.published_bytes().unwrap().expect("an end is a container");
    let own = SocketAddr::new(ends.receiver, PORT);
    let listener = in_namespace(routed.pid(Node::Receiver), || TcpListener::bind(own).unwrap()).unwrap();
    let to = SocketAddr::new(ends.destination, PORT);
    let mut stream = in_namespace(routed.pid(Node::Sender), || TcpStream::connect(to).unwrap()).unwrap();
    let sending = std::thread::spawn(move || stream.write_all(&vec![7; SENT]).unwrap());
    let (mut accepted, source) = listener.accept().unwrap();
    accepted.read_exact(&mut vec![0; SENT]).unwrap();
    assert_eq!(source.ip(), ends.source);
    sending.join().unwrap();
    drop((accepted, listener));
    routed.published_since(before, SENT as u64).unwrap().unwrap()
}

#[test]
fn bytes_to_a_container_are_counted_on_its_host() {
    let with_program = [Mechanism::DockerProxy, Mechanism::Pasta, Mechanism::Slirp];
    for mechanism in with_program.into_iter().chain([Mechanism::Dnat, Mechanism::Macvlan]) {
        let mut routed = build(mechanism);
        assert_eq!(routed.path_checks.len(), 2, "both families are carried");
        for family in Family::ALL {
            let counted = send_to_container(&mut routed, *family);
            // Beside the bytes themselves, headers, and what is sent again, count at most.
            assert!((SENT as u64..2 * SENT as u64).contains(&counted), "{mechanism} {family}: {counted}");
        }
    }
}

/// What benchmarks measure unawares: the rules of an engine take packets before its proxy gets them.
#[test]
fn what_passes_a_proxy_is_not_counted() {
    let mut routed = build(Mechanism::DockerProxy);
    let host = routed.pid(Node::Router2).to_string();
    let rules = "add table ip engine; add chain ip engine in { type nat hook prerouting priority dstnat; }; \
                 add rule ip engine in ip daddr 198.18.0.2 tcp dport 5202 dnat to 198.18.2.1; \
                 add chain ip engine out { type nat hook postrouting priority srcnat; }; \
                 add rule ip engine out oifname st0 masquerade";
    let added = Command::new("nsenter").args(["-t", &host, "-n", "nft", rules]).status().unwrap();
    assert!(added.success());
    // What the proxy writes for itself counts.
    assert!(send_to_container(&mut routed, Family::Ipv4) < SENT as u64 / 10);
    assert!(send_to_container(&mut routed, Family::Ipv6) >= SENT as u64, "it has no such rule");
}

/// A route by the container's host, which an engine could add, is not the way of macvlan.
#[test]
fn packets_that_a_host_forwards_are_refused() {
    let mut routed = build(Mechanism::Macvlan);
    send_to_container(&mut routed, Family::Ipv4);
    let router = routed.pid(Node::Router1).to_string();
    for family in Family::ALL {
        let container = ends(Mechanism::Macvlan, *family).unwrap().receiver;
        let host = if container.is_ipv4() { "198.18.0.2" } else { "2001:2:0:ffff::2" };
        let mut route = Command::new("nsenter");
        route.args(["-t", &router, "-n", "ip", "route", "add", &container.to_string(), "via", host]);
        assert!(route.status().unwrap().success());
        in_namespace(routed.pid(Node::Sender), || {
            let address = if container.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            UdpSocket::bind(address).unwrap().send_to(b"stacklab", (container, PORT)).unwrap();
        })
        .unwrap();
        let refused = routed.published_bytes().unwrap_err().to_string();
        assert!(refused.contains("router2") && refused.contains("has forwarded"), "{refused}");
    }
}
