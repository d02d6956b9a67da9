//! Routed testbeds in real namespaces, as far as this kernel supports them without modules. The tests need root and
//! `tayga`. They fail if either is missing.

use stacklab_model::{Family, LinkConfig, Mechanism, Rate, RouterQueue, Tracking};
use stacklab_testbed::kernel::router_thread::RouterThread;
use stacklab_testbed::{Node, Routed, RoutedSpec, TestbedError, ends, in_namespace, layers};
use std::io::Read;
use std::net::{IpAddr, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const PLAIN: LinkConfig = LinkConfig { rate: None, mtu: 1500, offloads: false };

fn build(mechanism: Mechanism, link_config: &LinkConfig) -> Result<Routed, TestbedError> {
    Routed::build(&RoutedSpec::of_namespaces(mechanism, link_config), Path::new("cat"), &[""; 0])
}

/// Sends datagrams end to end while tcpdump captures on the middle link, and returns its line for the first one.
fn capture_datagram(routed: &Routed, family: Family) -> String {
    let ends = ends(routed.mechanism, family).unwrap();
    let mut tcpdump = Command::new("nsenter");
    tcpdump.args(["-t", &routed.pid(Node::Router1).to_string(), "-n", "tcpdump"]);
    tcpdump.args(["-i", "st1", "-n", "-v", "-t", "-c", "1", "--immediate-mode", "-l"]);
    // Capture only UDP, not the receiver's ICMP "port unreachable" answers.
    tcpdump.arg("udp");
    let mut tcpdump = tcpdump.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    for _ in 0..100 {
        in_namespace(routed.pid(Node::Sender), || {
            let socket = UdpSocket::bind((ends.sender, 0)).unwrap();
            let _ = socket.send_to(b"seen", (ends.destination, 9));
        })
        .unwrap();
        std::thread::sleep(Duration::from_millis(20));
        if tcpdump.try_wait().unwrap().is_some() {
            break;
        }
    }
    let mut said = String::new();
    tcpdump.kill().ok();
    tcpdump.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    tcpdump.wait().unwrap();
    said
}

#[test]
fn routers_carry_both_families_as_they_are() {
    let routed = build(Mechanism::Native, &PLAIN).unwrap_or_else(|error| panic!("{error}"));
    let families: Vec<Family> = routed.path_checks.iter().map(|carried| carried.family).collect();
    assert_eq!(families, Family::ALL);
    for carried in &routed.path_checks {
        assert_eq!(carried.path_mtus, [1500, 1500]);
        assert_eq!(carried.headers.len(), 2, "{:?}", carried.headers);
    }
    assert!(capture_datagram(&routed, Family::Ipv4).contains("198.18.1.1."));
    assert!(capture_datagram(&routed, Family::Ipv6).contains("2001:2:0:1::1."));
}

#[test]
fn routers_forward_by_kernel_threads() {
    let mut spec = RoutedSpec::of_namespaces(Mechanism::Native, &PLAIN);
    spec.kind.queue = RouterQueue::Thread;
    let routed = Routed::build(&spec, Path::new("cat"), &[""; 0]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(routed.path_checks.len(), 2, "both families are carried");
    // One for each interface of both routers; in a PID namespace they cannot be seen.
    let threads = routed.router_threads();
    assert!(threads.is_empty() || threads.len() == 4, "{threads:?}");
    let before_ns = sum_ran_ns(threads);
    capture_datagram(&routed, Family::Ipv4);
    assert!(threads.is_empty() || sum_ran_ns(threads) > before_ns, "the threads forward");
    let inline = build(Mechanism::Native, &PLAIN).unwrap_or_else(|error| panic!("{error}"));
    assert!(inline.router_threads().is_empty());
}

#[test]
fn packets_are_steered_into_routers() {
    let mut spec = RoutedSpec::of_namespaces(Mechanism::Native, &PLAIN);
    spec.kind.queue = RouterQueue::Rps;
    let before = count_interrupts();
    let routed = Routed::build(&spec, Path::new("cat"), &[""; 0]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(routed.path_checks.len(), 2, "both families are carried");
    assert!(count_interrupts() > before);
}

/// Interrupts for packets that one processor of this machine has put into the backlog of another.
fn count_interrupts() -> u64 {
    let text = std::fs::read_to_string("/proc/net/softnet_stat").unwrap();
    let columns = text.lines().map(|line| line.split_whitespace().nth(9).unwrap());
    columns.map(|count| u64::from_str_radix(count, 16).unwrap()).sum()
}

#[test]
fn a_router_has_as_many_routes_as_asked() {
    let mut spec = RoutedSpec::of_namespaces(Mechanism::Native, &PLAIN);
    spec.kind.tables.routes = 100_000;
    let routed = Routed::build(&spec, Path::new("cat"), &[""; 0]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(routed.path_checks.len(), 2, "both families are carried");
    for (family, route) in
        [("-4", "1.0.0.0/24 via 198.18.1.1 dev st0"), ("-6", "2001::/48 via 2001:2:0:1::1 dev st0")]
    {
        let all = list_routes(&routed, Node::Router1, family);
        let further =
            all.lines().filter(|line| line.contains("proto static") && line.contains(" st0 ")).count();
        assert_eq!(further, 100_000, "{family}");
        assert!(all.lines().any(|line| line.starts_with(route)), "{route}");
        assert!(
            list_routes(&routed, Node::Router2, family).lines().count() < 10,
            "{family}: only the near router has them"
        );
    }
}

#[test]
fn a_router_tracks_connections_of_both_families() {
    let mut spec = RoutedSpec::of_namespaces(Mechanism::Native, &PLAIN);
    spec.kind.tables.tracking = Tracking::On(5000);
    let routed = Routed::build(&spec, Path::new("cat"), &[""; 0]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(routed.path_checks.len(), 2, "both families are carried");
    let [near, far] = [Node::Router1, Node::Router2].map(|node| count_connections(&routed, node));
    // The path checks are connections too.
    assert!((10_002..10_100).contains(&near), "{near}");
    assert_eq!(far, 0, "only the near router tracks");
}

fn count_connections(routed: &Routed, node: Node) -> u64 {
    let path = "/proc/sys/net/netfilter/nf_conntrack_count";
    let count = in_namespace(routed.pid(node), || std::fs::read_to_string(path).unwrap());
    count.unwrap().trim().parse().unwrap()
}

fn list_routes(routed: &Routed, node: Node, family: &str) -> String {
    let pid = routed.pid(node).to_string();
    let listed = Command::new("nsenter").args(["-t", &pid, "-n", "ip", family, "route"]).output();
    String::from_utf8(listed.unwrap().stdout).unwrap()
}

fn sum_ran_ns(threads: &[RouterThread]) -> u64 {
    threads.iter().map(|thread| thread.times().expect("it exists").ran_ns).sum()
}

#[test]
fn translators_carry_ipv6_with_other_addresses() {
    for (mechanism, family, on_the_link, path_mtus) in [
        (Mechanism::Nat64, Family::Ipv6, ["2001:2:0:1::1", "2001:2:0:64::c612:201"], [1500, 1480]),
        (Mechanism::Siit, Family::Ipv4, ["2001:2:0:64::c612:101", "2001:2:0:2::1"], [1480, 1500]),
        (Mechanism::Xlat464, Family::Ipv4, ["2001:2:0:c1a7::1", "2001:2:0:64::c612:201"], [1480, 1480]),
        (
            Mechanism::MapTranslation,
            Family::Ipv4,
            ["2001:2:0:3400:0:c612:4312:34", "2001:2:0:64::c612:201"],
            [1480, 1480],
        ),
    ] {
        let routed = build(mechanism, &PLAIN).unwrap_or_else(|error| panic!("{error}"));
        let [carried] = &routed.path_checks[..] else { panic!("{mechanism}: {:?}", routed.path_checks) };
        assert_eq!((carried.family, carried.path_mtus), (family, path_mtus), "{mechanism}");
        let [from, to] = on_the_link;
        assert_eq!(carried.headers, [format!("ipv6 {from} > {to}"), "udp".to_owned()], "{mechanism}");
        assert_eq!(layers(&carried.frame).len(), 2);
        // Another capture on the same link shows the same headers.
        let said = capture_datagram(&routed, family);
        assert!(
            said.contains(&format!("{from}.")) && said.contains(&format!("{to}.9")),
            "{mechanism}: {said}"
        );
    }
}

#[test]
fn headers_are_those_on_the_way_to_the_router() {
    let routed = build(Mechanism::SrV6Two, &PLAIN).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(routed.path_checks.len(), 2, "both families are carried");
    for carried in &routed.path_checks {
        // The router at the other end puts the second segment's address in the place of the first one's.
        assert_eq!(carried.headers[0], "ipv6 2001:2:0:ffff::1 > 2001:2:0:f2::e");
        assert_eq!(carried.headers[1], "segment routing (2 segments, 1 left)");
        assert_eq!(carried.path_mtus, [1420, 1420]);
    }
}

/// The testbed is built only if customers that send from the same port at the same time do not mix.
#[test]
fn customers_arrive_as_their_mechanism_says() {
    for (mechanism, sources) in [
        (Mechanism::Native, ["198.18.1.1", "198.18.161.1", "2001:2:0:1::1", "2001:2:0:a1::1"]),
        (Mechanism::Nat44, ["198.18.0.1", "198.18.129.1", "", ""]),
    ] {
        let mut spec = RoutedSpec::of_namespaces(mechanism, &PLAIN);
        spec.kind.customers = 2;
        let routed =
            Routed::build(&spec, Path::new("cat"), &[""; 0]).unwrap_or_else(|error| panic!("{error}"));
        let seen: Vec<String> = routed.path_checks.iter().map(|check| check.headers[0].clone()).collect();
        let sources: Vec<&str> = sources.into_iter().filter(|source| !source.is_empty()).collect();
        assert_eq!(seen.len(), sources.len(), "{seen:?}");
        for (headers, source) in seen.iter().zip(sources) {
            assert!(headers.contains(&format!(" {source} > ")), "{mechanism}: {headers}");
        }
        assert_eq!(routed.list_nodes().len(), 5, "one more router");
    }
}

#[test]
fn relay_drops_what_is_not_the_customers() {
    let routed = build(Mechanism::MapTranslation, &PLAIN).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(send_from_port(&routed, 1235), Some(1235), "the last port of the first range");
    assert_eq!(send_from_port(&routed, 1236), None, "the next customer's");
    assert_eq!(send_from_port(&routed, 2256), Some(2256), "the first port of the second range");
}

/// Makes the near router's NAT use a port for one datagram. Returns the port from which it arrived at the receiver.
fn send_from_port(routed: &Routed, port: u16) -> Option<u16> {
    let ends = ends(routed.mechanism, Family::Ipv4).unwrap();
    let rule = format!("oifname tunnel ip protocol udp snat to {}:{port}", ends.source);
    for command in ["flush chain ip stacklab out", &format!("add rule ip stacklab out {rule}")] {
        let router = routed.pid(Node::Router1).to_string();
        let mut nft = Command::new("nsenter");
        nft.args(["-t", &router, "-n", "nft"]).args(command.split(' '));
        assert!(nft.status().unwrap().success(), "{command}");
    }
    let receiver = bind(routed, Node::Receiver, ends.receiver);
    let sender = bind(routed, Node::Sender, ends.sender);
    receiver.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    sender.send_to(b"whose?", (ends.destination, receiver.local_addr().unwrap().port())).unwrap();
    let (_, source) = receiver.recv_from(&mut [0; 16]).ok()?;
    assert_eq!(source.ip(), ends.source);
    Some(source.port())
}

fn bind(routed: &Routed, node: Node, address: IpAddr) -> UdpSocket {
    in_namespace(routed.pid(node), || UdpSocket::bind((address, 0)).unwrap()).unwrap()
}

#[test]
fn tunnel_the_kernel_lacks_is_refused_with_its_router() {
    let sit = stacklab_testbed::abilities().into_iter().find(|ability| ability.name == "sit").unwrap();
    match sit.result {
        Ok(()) => {
            let routed = build(Mechanism::SixInFour, &PLAIN).unwrap();
            assert_eq!(routed.path_checks[0].path_mtus, [1480, 1480]);
        }
        // Building it would load the module, which would add a device to the machine's own namespace.
        Err(reason) if reason.contains("is not loaded") => {}
        Err(_) => {
            let said = build(Mechanism::SixInFour, &PLAIN).unwrap_err().to_string();
            assert!(said.contains("sit device of 6in4") && said.contains("on router1"), "{said}");
        }
    }
}

#[test]
fn shaped_routed_testbed_has_its_rate_at_each_end() {
    let link_config = LinkConfig { rate: Some(Rate(100_000_000)), ..PLAIN };
    let routed = build(Mechanism::Native, &link_config).unwrap_or_else(|error| panic!("{error}"));
    for (node, device) in [
        (Node::Sender, "st0"),
        (Node::Router1, "st0"),
        (Node::Router1, "st1"),
        (Node::Router2, "st1"),
        (Node::Router2, "st0"),
        (Node::Receiver, "st0"),
    ] {
        let pid = routed.pid(node).to_string();
        let mut tc = Command::new("nsenter");
        tc.args(["-t", &pid, "-n", "tc", "qdisc", "show", "dev", device]);
        let queues = String::from_utf8(tc.output().unwrap().stdout).unwrap();
        assert!(queues.contains("rate 100Mbit"), "{node} {device}: {queues}");
    }
    let pids = Node::ALL.map(|node| routed.pid(node));
    drop(routed);
    assert!(pids.iter().all(|pid| !Path::new(&format!("/proc/{pid}")).exists()));
}
