//! The guest's side: the networks of a plan's arms, and one thread that sends each message and receives it, between
//! marks.

use crate::exact::plan::{ExactPlan, ROUNDS};
use crate::exact::sys::{begin, end, pass, seed_random, ticks};
use serde::{Deserialize, Serialize};
use stacklab_guests::inside::{is_first, prepare_testbeds};
use stacklab_model::{ExactArm, ExactPath, ExactProbe, Family, Role, SocketKind, Tables, Tracking};
use stacklab_study::LINK;
use stacklab_testbed::mechanism::nat;
use stacklab_testbed::{
    AGENT, Node, PathEnds, Routed, RoutedSpec, RoutedStreams, Testbed, addresses, ends, in_namespace,
};
use std::fs;
use std::io::{self, BufWriter, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

/// The first line that a guest writes: the release of its kernel, and the instructions of each phase by QEMU's counter.
/// The kernel's functions follow, as lines of /proc/kallsyms, then [`END`].
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum GuestReport {
    Counted { kernel: String, ticks: Vec<u64> },
    Failed { reason: String },
}

const TIMEOUT: Duration = Duration::from_secs(5);
/// The last line of a guest's report.
pub(super) const END: &str = "end";

/// Sends and receives the messages of a plan in this system, then opens a stream and reports on it. While messages are
/// counted, no device may interrupt: the machine outside would choose the moment.
pub fn send_plan<W: Write>(plan: &str, open: impl FnOnce() -> io::Result<W>) -> io::Result<()> {
    if is_first() {
        seed_random(&[0x5a; 256])?;
    }
    let found = plan.parse().and_then(|plan: ExactPlan| Ok((carry(&plan)?, functions()?)));
    let mut stream = BufWriter::with_capacity(32 << 10, open()?);
    let (report, functions) = match found {
        Ok((ticks, functions)) => {
            let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned();
            (GuestReport::Counted { kernel, ticks }, functions)
        }
        Err(reason) => (GuestReport::Failed { reason }, String::new()),
    };
    serde_json::to_writer(&mut stream, &report)?;
    writeln!(stream)?;
    stream.write_all(functions.as_bytes())?;
    writeln!(stream, "{END}")?;
    stream.flush()
}

/// Carries the messages of all pairs. Returns the ticks of each phase.
fn carry(plan: &ExactPlan) -> Result<Vec<u64>, String> {
    let networks = Networks::build(plan)?;
    let mut all = Vec::with_capacity(plan.phases());
    for pair in &plan.pairs {
        let probe = pair.probe;
        let mut ends = Vec::new();
        for arm in &pair.arms {
            let opened = ArmSockets::open(probe, &networks.place(arm)).map_err(|reason| {
                let family = arm.family;
                let path = arm.path;
                format!("cannot open sockets of {family} for {probe} over {path} in the guest: {reason}")
            })?;
            ends.push((opened, [vec![0x5a; arm.size as usize], vec![0; arm.size as usize]], arm));
        }
        // The first round fills caches and opens the congestion window: no phase.
        for round in 0..=ROUNDS {
            for (ends, buffers, arm) in &mut ends {
                let took = ends.exchange(pair.messages(), buffers, round > 0).map_err(|reason| {
                    let ExactArm { family, path, size, .. } = arm;
                    format!("cannot carry {probe} of {size} bytes with {family} over {path} in the guest: {reason}")
                })?;
                all.extend(took);
            }
        }
    }
    Ok(all)
}

/// The functions of /proc/kallsyms, without other symbols.
fn functions() -> Result<String, String> {
    // Without it, addresses are hidden; the file may be absent too.
    let _ = fs::write("/proc/sys/kernel/kptr_restrict", "0");
    let all = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let mut functions = String::new();
    for line in all.lines() {
        if let Some("t" | "T" | "w" | "W") = line.split(' ').nth(1) {
            functions.push_str(line);
            functions.push('\n');
        }
    }
    if functions.is_empty() {
        return Err("the guest's kernel lists no functions: it needs CONFIG_KALLSYMS".to_owned());
    }
    Ok(functions)
}

/// The sockets of an arm: connected ones, between which messages pass and perhaps return; or a listener, whose
/// connections start in the namespace of a process.
enum ArmSockets {
    Connected { sender: OwnedFd, receiver: OwnedFd, returns: bool },
    Connect { listener: TcpListener, to: SocketAddr, from: Option<u32> },
}

impl ArmSockets {
    fn open(probe: ExactProbe, place: &ArmPlacement) -> io::Result<Self> {
        let ArmPlacement { sender: from, receiver: at, ends } = place;
        if matches!(probe, ExactProbe::Udp | ExactProbe::Echo) {
            let receiver = within(*at, || UdpSocket::bind((ends.receiver, 0)))?;
            let to = SocketAddr::new(ends.destination, receiver.local_addr()?.port());
            let sender = within(*from, || UdpSocket::bind((ends.sender, 0)))?;
            for socket in [&sender, &receiver] {
                socket.set_read_timeout(Some(TIMEOUT))?;
            }
            sender.connect(to)?;
            // A translator may have changed the source.
            sender.send(&[0])?;
            receiver.connect(receiver.recv_from(&mut [0])?.1)?;
            let returns = probe == ExactProbe::Echo;
            return Ok(ArmSockets::Connected { sender: sender.into(), receiver: receiver.into(), returns });
        }
        let listener = within(*at, || TcpListener::bind((ends.receiver, 0)))?;
        let to = SocketAddr::new(ends.destination, listener.local_addr()?.port());
        if probe == ExactProbe::Connect {
            return Ok(ArmSockets::Connect { listener, to, from: *from });
        }
        let sender = within(*from, || TcpStream::connect_timeout(&to, TIMEOUT))?;
        let (receiver, _) = listener.accept()?;
        for socket in [&sender, &receiver] {
            socket.set_nodelay(true)?;
            socket.set_read_timeout(Some(TIMEOUT))?;
        }
        Ok(ArmSockets::Connected { sender: sender.into(), receiver: receiver.into(), returns: false })
    }

    /// Sends and receives the messages of a round, and returns the ticks if they are counted.
    fn exchange(
        &self,
        messages: u64,
        [message, received]: &mut [Vec<u8>; 2],
        is_counted: bool,
    ) -> io::Result<Option<u64>> {
        let namespace = match self {
            ArmSockets::Connect { from, .. } => *from,
            ArmSockets::Connected { .. } => None,
        };
        within(namespace, || {
            if is_counted {
                begin();
            }
            let from = ticks();
            for _ in 0..messages {
                match self {
                    ArmSockets::Connected { sender, receiver, returns } => {
                        pass(sender, receiver, message, received)?;
                        if *returns {
                            pass(receiver, sender, message, received)?;
                        }
                    }
                    ArmSockets::Connect { listener, to, .. } => {
                        let sender = TcpStream::connect(to)?;
                        let receiver = listener.accept()?;
                        drop(sender);
                        drop(receiver);
                    }
                }
            }
            let took = ticks().wrapping_sub(from);
            if is_counted {
                end();
            }
            Ok(is_counted.then_some(took))
        })
    }
}

/// The most connections that the guest's kernel tracks, of both families and of all networks.
const MAX_TRACKED: &str = "/proc/sys/net/netfilter/nf_conntrack_max";
const MAX_CONNECTIONS: u32 = 1_000_000;

/// The path of this program in the guest, whose init process it is.
const PROGRAM: &str = "/stacklab";
/// The hosts' processes have started by then, and wait. Virtual time, in which the guest is idle.
const SETTLED: Duration = Duration::from_secs(2);

/// A network that was built, and what ends it when dropped.
enum Built {
    Loopback,
    Link(Box<Testbed>),
    Routed(
        Box<Routed>,
        #[expect(dead_code, reason = "the hosts' processes end with their streams")] RoutedStreams,
    ),
}

/// All networks of a plan, each with one of the arms that are in it.
struct Networks(Vec<(ExactArm, Built)>);

/// Where an arm's sockets are: the process whose namespace holds the sender, the same of the receiver, and their
/// addresses. `None`: this process.
struct ArmPlacement {
    sender: Option<u32>,
    receiver: Option<u32>,
    ends: PathEnds,
}

impl Networks {
    /// Builds what a plan needs. Call it from the main thread, which the hosts' processes end with.
    fn build(plan: &ExactPlan) -> Result<Self, String> {
        let mut all = Networks(Vec::new());
        let has_testbeds = plan.arms().any(|arm| arm.path != ExactPath::Loopback);
        if has_testbeds {
            prepare_testbeds();
        }
        if is_first() && plan.arms().any(|arm| arm.conntrack != Tracking::Off) {
            // The machine is the plan's alone.
            fs::write(MAX_TRACKED, MAX_CONNECTIONS.to_string())
                .map_err(|error| format!("cannot write {MAX_TRACKED} in the guest: {error}"))?;
        }
        for arm in plan.arms() {
            if all.0.iter().any(|(known, _)| known.shares_network(arm)) {
                continue;
            }
            let program = Path::new(PROGRAM);
            let built = match arm.path {
                ExactPath::Loopback => Ok(Built::Loopback),
                ExactPath::Link => {
                    Testbed::build(&LINK, program, &AGENT).map(|testbed| Built::Link(Box::new(testbed)))
                }
                ExactPath::Routed(mechanism) => {
                    let mut spec = RoutedSpec::of_namespaces(mechanism, &LINK);
                    spec.kind.tables = find_tables(arm);
                    spec.kind.rules = arm.firewall;
                    Routed::build(&spec, program, &AGENT).and_then(|mut routed| {
                        let streams = routed.meet()?;
                        Ok(Built::Routed(Box::new(routed), streams))
                    })
                }
            };
            let built = built
                .map_err(|error| format!("cannot build the network `{}` in the guest: {error}", arm.path))?;
            if let (1.., [_, Some(receiver)]) = (arm.rules, built.pids()) {
                add_rules(receiver, arm.rules)?;
            }
            all.0.push((*arm, built));
        }
        if has_testbeds {
            std::thread::sleep(SETTLED);
        }
        Ok(all)
    }

    fn place(&self, arm: &ExactArm) -> ArmPlacement {
        const CARRIED: &str = "the plan has carried families only";
        let built = self.0.iter().find(|(known, _)| known.shares_network(arm));
        let (_, built) = built.expect("each arm's network was built");
        let [sender, receiver] = built.pids();
        let ends = match arm.path {
            ExactPath::Loopback => connect_straight(arm.family.loopback(), arm.family.loopback()),
            ExactPath::Link => {
                let sender = find_address(addresses(Role::Sender), arm.family).expect(CARRIED);
                let receiver = find_address(addresses(Role::Receiver), arm.family).expect(CARRIED);
                connect_straight(sender, receiver)
            }
            ExactPath::Routed(mechanism) => ends(mechanism, arm.family).expect(CARRIED),
        };
        let ends = if arm.socket == SocketKind::Ipv4Mapped { map_ends(ends) } else { ends };
        ArmPlacement { sender, receiver, ends }
    }
}

/// The tables of the routers.
pub(super) fn find_tables(arm: &ExactArm) -> Tables {
    Tables { routes: arm.routes, tracking: arm.conntrack, ..Tables::default() }
}

fn find_address(addresses: [IpAddr; 2], family: Family) -> Option<IpAddr> {
    addresses.into_iter().find(|address| Family::of(*address) == family)
}

fn connect_straight(sender: IpAddr, receiver: IpAddr) -> PathEnds {
    PathEnds { sender, receiver, destination: receiver, source: sender }
}

impl Built {
    fn pids(&self) -> [Option<u32>; 2] {
        match self {
            Built::Loopback => [None, None],
            Built::Link(testbed) => testbed.hosts().each_ref().map(|host| Some(host.pid())),
            Built::Routed(routed, _) => [Node::Sender, Node::Receiver].map(|node| Some(routed.pid(node))),
        }
    }
}

/// The addresses as IPv6 sockets for both families have them: sockets of these addresses are such sockets.
fn map_ends(ends: PathEnds) -> PathEnds {
    PathEnds {
        sender: map_address(ends.sender),
        receiver: map_address(ends.receiver),
        destination: map_address(ends.destination),
        source: map_address(ends.source),
    }
}

fn map_address(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().into(),
        IpAddr::V6(_) => address,
    }
}

/// Runs work in the namespace of a process, or here.
fn within<T: Send>(process: Option<u32>, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    match process {
        Some(pid) => in_namespace(pid, work)?,
        None => work(),
    }
}

/// Adds nftables rules to the input of a host, for both families. None matches: their addresses are of no host.
fn add_rules(host: u32, rules: u32) -> Result<(), String> {
    let text = write_table("ip", "192.0.2.250", rules) + &write_table("ip6", "2001:db8:ffff::250", rules);
    let added = within(Some(host), || Ok(nat::add_rules(&text)));
    added.map_err(|reason| reason.to_string())?.map_err(|fault| fault.to_string())
}

fn write_table(family: &str, address: &str, rules: u32) -> String {
    let rule = format!("{family} saddr {address} drop;\n").repeat(rules as usize);
    format!(
        "table {family} rules {{ chain input {{ type filter hook input priority 0; policy accept;\n{rule} }}\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carries_all_probes_and_reports_each_phase() {
        let mut out = Vec::new();
        let [short, long, none] =
            [64, 1000, 0].map(|size| format!("ipv4@loopback/{size}*0+ipv6@loopback/{size}*0"));
        let sockets = "ipv4@loopback/64*0+ipv4@loopback/64*0:ipv4-mapped";
        let plan = format!("udp:{short},tcp:{long},echo:{short},connect:{none},udp:{sockets},tcp:{sockets}");
        send_plan(&plan, || Ok(&mut out)).unwrap();
        let text = String::from_utf8(out).unwrap();
        let first = text.lines().next().unwrap();
        let GuestReport::Counted { ticks, .. } = serde_json::from_str(first).unwrap() else {
            panic!("{first}")
        };
        assert_eq!(ticks.len(), 6 * 2 * ROUNDS);
        assert!(ticks.iter().all(|ticks| *ticks > 0));
        assert_eq!(text.lines().last(), Some(END));
        assert!(text.lines().count() > 1000, "it lists the kernel's functions");
    }

    #[test]
    fn wrong_plan_is_reported() {
        let mut out = Vec::new();
        send_plan("udp", || Ok(&mut out)).unwrap();
        assert!(String::from_utf8(out).unwrap().starts_with("{\"failed\":{\"reason\":\"`udp` is not a plan"));
    }
}
