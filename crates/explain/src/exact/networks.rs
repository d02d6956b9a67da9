//! The networks of a plan's arms, inside the guest.

use crate::exact::plan::ExactPlan;
use stacklab_guests::inside::prepare_testbeds;
use stacklab_model::{ExactArm, ExactPath, Family, LinkConfig, Role};
use stacklab_testbed::{
    AGENT, Node, PathEnds, Routed, RoutedSpec, Streams, Testbed, TestbedError, addresses, ends, find,
    in_namespace,
};
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The path of this program in the guest, whose init process it is.
const PROGRAM: &str = "/stacklab";
pub(super) const LINK: LinkConfig = LinkConfig { rate: None, mtu: 1500, offloads: false };
/// The hosts' processes have started by then, and wait. Virtual time, in which the guest is idle.
const SETTLED: Duration = Duration::from_secs(2);

/// A network that was built, and what ends it when dropped.
enum Built {
    Loopback,
    Link(Box<Testbed>),
    Routed(
        Box<Routed>,
        #[expect(dead_code, reason = "the hosts' processes end with their streams")] [Streams; 4],
    ),
}

/// All networks of a plan, one for each path and number of rules.
pub(super) struct Networks(Vec<((ExactPath, u32), Built)>);

/// Where an arm's sockets are: the process whose namespace holds the sender, the same of the receiver, and their
/// addresses. `None`: this process.
pub(super) struct Place {
    pub(super) sender: Option<u32>,
    pub(super) receiver: Option<u32>,
    pub(super) ends: PathEnds,
}

impl Networks {
    /// Builds what a plan needs. Call it from the main thread, which the hosts' processes end with.
    pub(super) fn build(plan: &ExactPlan) -> Result<Self, String> {
        let mut all = Networks(Vec::new());
        let has_testbeds = plan.arms().any(|arm| arm.path != ExactPath::Loopback);
        if has_testbeds {
            prepare_testbeds();
        }
        for arm in plan.arms() {
            let key = (arm.path, arm.rules);
            if all.0.iter().any(|(known, _)| *known == key) {
                continue;
            }
            let program = Path::new(PROGRAM);
            let built = match arm.path {
                ExactPath::Loopback => Ok(Built::Loopback),
                ExactPath::Link => {
                    Testbed::build(&LINK, program, &AGENT).map(|testbed| Built::Link(Box::new(testbed)))
                }
                ExactPath::Routed(mechanism) => {
                    let spec = RoutedSpec::of_namespaces(mechanism, &LINK);
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
            all.0.push((key, built));
        }
        if has_testbeds {
            std::thread::sleep(SETTLED);
        }
        Ok(all)
    }

    /// The place of an arm whose network was built.
    pub(super) fn place(&self, arm: &ExactArm) -> Place {
        let built = self.0.iter().find(|(key, _)| *key == (arm.path, arm.rules));
        let (_, built) = built.expect("each arm's network was built");
        let [sender, receiver] = built.pids();
        let of =
            |addresses: [IpAddr; 2]| addresses.into_iter().find(|address| Family::of(*address) == arm.family);
        let straight = |sender: IpAddr, receiver: IpAddr| PathEnds {
            sender,
            receiver,
            destination: receiver,
            source: sender,
        };
        let ends = match arm.path {
            ExactPath::Loopback => Some(straight(arm.family.loopback(), arm.family.loopback())),
            ExactPath::Link => {
                of(addresses(Role::Sender)).zip(of(addresses(Role::Receiver))).map(|(a, b)| straight(a, b))
            }
            ExactPath::Routed(mechanism) => ends(mechanism, arm.family),
        };
        Place { sender, receiver, ends: ends.expect("the plan has carried families only") }
    }
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

/// Runs work in the namespace of a process, or here.
pub(super) fn within<T: Send>(
    process: Option<u32>,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    match process {
        Some(pid) => in_namespace(pid, work)?,
        None => work(),
    }
}

/// Adds nftables rules to the input of a host, for both families. None matches: their addresses are of no host.
fn add_rules(host: u32, rules: u32) -> Result<(), String> {
    let table = |family: &str, address: &str| {
        let rule = format!("{family} saddr {address} drop;\n").repeat(rules as usize);
        format!(
            "table {family} rules {{ chain input {{ type filter hook input priority 0; policy accept;\n{rule} }}\n}}\n"
        )
    };
    let text = table("ip", "192.0.2.250") + &table("ip6", "2001:db8:ffff::250");
    let nft = nft().map_err(|error| error.to_string())?;
    let ran = within(Some(host), || {
        let mut child = Command::new(&nft)
            .args(["-f", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        child.stdin.take().expect("it is a pipe").write_all(text.as_bytes())?;
        child.wait_with_output()
    });
    let ran = ran.map_err(|reason| format!("cannot run nft in the guest: {reason}"))?;
    match ran.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&ran.stderr).lines().next().unwrap_or_default().to_owned();
            Err(format!(
                "cannot add nftables rules in the guest: {said} (its image has nf_tables if it is new: stacklab image get)"
            ))
        }
    }
}

/// The program that adds nftables rules.
pub(super) fn nft() -> Result<PathBuf, TestbedError> {
    find("nft", "sudo apt-get install --no-install-recommends nftables")
}
