//! Two hosts and a router between them, each in a network namespace: what firewalls and address translation do to a
//! measurement. The interface of each link is named after the other end: `near` and `far` on the router.

use super::listening::Listening;
use super::program::{Outcome, Program, require_root, require_tool};
use std::process::{Child, Command, Stdio};

/// Addresses of the coordinator's host, of the agent's host, and their gateways.
pub(crate) const HERE: [&str; 2] = ["10.9.1.1", "fd09:1::1"];
pub(crate) const THERE: [&str; 2] = ["10.9.2.2", "fd09:2::2"];

/// The coordinator's host, the router and the agent's host.
pub(crate) struct RoutedPath {
    hosts: [Child; 3],
    program: Program,
}

impl Drop for RoutedPath {
    fn drop(&mut self) {
        for host in &mut self.hosts {
            let _ = host.kill();
            let _ = host.wait();
        }
    }
}

impl RoutedPath {
    /// Both families are routed; the router has these rules of nft.
    pub(crate) fn with(rules: &str) -> Self {
        require_root();
        require_tool("nsenter", "util-linux");
        require_tool("nft", "nftables");
        let hosts = [(); 3].map(|()| {
            let mut command = Command::new("unshare");
            command.args(["--net", "sh", "-c", "echo; exec sleep 600"]).stdout(Stdio::piped());
            let mut host = command.spawn().unwrap();
            // Its namespace is there when it says something.
            std::io::Read::read_exact(host.stdout.as_mut().unwrap(), &mut [0]).unwrap();
            host
        });
        let path = RoutedPath { hosts, program: Program::new() };
        let [here, _, there] = path.pids();
        path.on_router(&format!(
            "echo 1 > /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
             ip link add near type veth peer name router netns {here}
             ip link add far type veth peer name router netns {there}
             ip address add 10.9.1.254/24 dev near; ip address add fd09:1::fe/64 dev near nodad
             ip address add 10.9.2.254/24 dev far; ip address add fd09:2::fe/64 dev far nodad
             ip link set near up; ip link set far up"
        ));
        for (pid, net, [v4, v6]) in [(&here, 1, HERE), (&there, 2, THERE)] {
            run(
                pid,
                &format!(
                    "ip link set lo up; ip link set router up
                     ip address add {v4}/24 dev router; ip address add {v6}/64 dev router nodad
                     ip route add default via 10.9.{net}.254; ip -6 route add default via fd09:{net}::fe"
                ),
            );
        }
        path.on_router(rules);
        path
    }

    fn pids(&self) -> [String; 3] {
        self.hosts.each_ref().map(|host| host.id().to_string())
    }

    /// Runs a script on the router.
    pub(crate) fn on_router(&self, script: &str) {
        run(&self.pids()[1], script);
    }

    /// An agent on the other host.
    pub(crate) fn agent(&self, options: &str) -> Listening {
        Listening::in_namespace_with(&self.pids()[2], "", options)
    }

    /// The program on the coordinator's host.
    pub(crate) fn measure(&self, there: &Listening, words: &str) -> Outcome {
        let shell = ["nsenter", "-t", &self.pids()[0], "-n", "sh", "-c"];
        let words = format!("exec \"$STACKLAB\" measure {words} -p {}", there.port);
        Outcome::of(self.program.script(&shell, &words))
    }
}

fn run(pid: &str, script: &str) {
    let script = format!("set -e\n{script}");
    let output = Command::new("nsenter").args(["-t", pid, "-n", "sh", "-c", &script]).output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
}
