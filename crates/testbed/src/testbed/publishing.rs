//! The host of a container while a testbed exists: it starts what brings packets to the container, or from it where the
//! sender is one, and counts what that has carried. The path of a container is easily another one than was meant, such
//! as the rules of an engine in front of its proxy; so the bytes that arrive are compared with those that the program
//! or the rule itself counts.

use crate::kernel::acknowledged::AcknowledgedBytes;
use crate::kernel::netlink::{change, index, raise, wait_until_quiet, without_link_local};
use crate::link::{configure_client, switch_off_all};
use crate::mechanism::publish::{
    PORTS, count_forwarded_bytes, publisher_program, write_docker_proxies, write_pasta, write_slirp,
};
use crate::path_ends::ends_of;
use crate::testbed::macvlan::{count_bytes_past_host, create_macvlan, name_device, send_single_segments};
use crate::testbed::network::HostChain;
use crate::testbed::path_check::{CheckedPath, TIMEOUT, refuse_family};
use crate::{
    AtHost, Attempt, CustomerId, Fault, Host, INTERFACE, Router, Site, TestbedError, Workdir, is_listening,
    is_listening_in, last_words,
};
use stacklab_model::{Family, Mechanism, Publisher, Transport};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The places of the container's host and of the container in the chain, and those where the sender is one.
const HOST: usize = 2;
const CONTAINER: usize = 3;
const SENDERS_HOST: usize = 1;
const SENDER: usize = 0;
/// The container's end of the link to its host where a program takes the place of that link.
const UNUSED: &str = "unused";
/// The bytes that the check of a family sends.
const CHECKED: usize = 100_000;
const DOCKER_PROXY: &str = "docker-proxy";
const SLIRP: &str = "slirp4netns";
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The receiving agent's options: programs publish fixed ports.
pub(crate) fn list_agent_options(mechanism: Mechanism) -> Vec<String> {
    if !mechanism.publisher().is_some_and(Publisher::has_ports) {
        return Vec::new();
    }
    vec!["--data-port".to_owned(), format!("{}-{}", PORTS.start(), PORTS.end())]
}

/// The site whose client is a container with another device than its end of the link to the host.
pub(crate) fn find_replaced_link(mechanism: Mechanism) -> Option<Site> {
    match mechanism.publisher()? {
        Publisher::Pasta | Publisher::Macvlan => Some(Site::Far),
        Publisher::Slirp => Some(Site::Near),
        Publisher::Dnat | Publisher::DockerProxy => None,
    }
}

/// What brings packets to the container, or from it.
#[derive(Debug)]
pub(crate) struct Publishing {
    publisher: Publisher,
    /// What the container has acknowledged, where a program moves bytes within the kernel.
    acknowledged: Option<AcknowledgedBytes>,
    /// The receiver's process.
    container: u32,
}

impl Publishing {
    /// Starts it on the host, whose routes and rules are there. `None` if no end is a container. `router` is the far
    /// one, and `mtus` are those of the clients' devices.
    pub(crate) fn start(
        network: &mut HostChain<4>,
        router: &Router,
        mtus: [u32; 2],
        workdir: &Workdir,
    ) -> Result<Option<Self>, TestbedError> {
        let Some(publisher) = router.mechanism.publisher() else { return Ok(None) };
        let mut acknowledged = None;
        match publisher {
            Publisher::Dnat => {}
            Publisher::DockerProxy => {
                let container = Site::Far.client_addresses(router.mechanism).to_vec();
                acknowledged = Some(watch_sockets(&network.hosts[HOST], container)?);
                start_docker_proxies(&mut network.hosts[HOST], router, workdir)?;
            }
            Publisher::Pasta => start_pasta(network, router, mtus[1], workdir)?,
            Publisher::Slirp => start_slirp(network, router.mechanism, mtus[0], workdir)?,
            Publisher::Macvlan => start_macvlan(network, router.mechanism, mtus[1])?,
        }
        let container = network.hosts[CONTAINER].pid();
        Ok(Some(Publishing { publisher, acknowledged, container }))
    }

    /// The place of the container's host in the chain.
    pub(crate) fn host(&self) -> usize {
        if self.publisher.is_of_sender() { SENDERS_HOST } else { HOST }
    }

    /// The bytes that it has carried so far, by its own count. Those of packets have their headers.
    pub(crate) fn count_bytes(&self, host: &Host) -> Result<u64, TestbedError> {
        let spliced = match &self.acknowledged {
            Some(acknowledged) => {
                acknowledged.count().attempt("count what the container got").at(host.node())?
            }
            None => 0,
        };
        match self.publisher {
            Publisher::Dnat => host.inside(count_forwarded_bytes),
            Publisher::DockerProxy | Publisher::Pasta => Ok(host.companions_wrote()? + spliced),
            // It reads the container's packets, and its calls for sockets count nowhere.
            Publisher::Slirp => host.companions_read(),
            Publisher::Macvlan => count_bytes_past_host(host, self.container),
        }
    }

    /// The same once it changes no longer: what a trial has left is carried a little later, and the kernel removes its
    /// sockets then.
    pub(crate) fn settle(&self, host: &Host) -> Result<u64, TestbedError> {
        let start = Instant::now();
        let mut last = self.count_bytes(host)?;
        while self.publisher.is_program() && start.elapsed() < TIMEOUT {
            thread::sleep(2 * POLL_INTERVAL);
            let now = self.count_bytes(host)?;
            if now == last {
                break;
            }
            last = now;
        }
        Ok(last)
    }

    /// Sends bytes to the receiver by TCP, and checks that all arrive, from where they should, and that this counts
    /// them.
    pub(crate) fn check(
        &self,
        path: &CheckedPath<'_>,
        mechanism: Mechanism,
        family: Family,
    ) -> Result<(), TestbedError> {
        let [sender, _, _, receiver] = path.hosts;
        let host = path.hosts[self.host()];
        let ends = ends_of(CustomerId::FIRST, mechanism, family).expect("the family is carried");
        let port = *PORTS.start();
        let before = self.count_bytes(host)?;
        let listening = SocketAddr::new(ends.receiver, port);
        let listener =
            receiver.inside(|| TcpListener::bind(listening).attempt(format!("listen on {listening}")))?;
        let to = SocketAddr::new(ends.destination, port);
        let mut stream = sender
            .inside(|| TcpStream::connect_timeout(&to, TIMEOUT).attempt(format!("connect to {to}")))
            .map_err(|error| refuse_family(mechanism, family, error.to_string()))?;
        let source =
            exchange(&mut stream, &listener).map_err(|reason| refuse_family(mechanism, family, reason))?;
        if source != ends.source {
            let reason = format!("TCP arrives from {source}, not from {}", ends.source);
            return Err(refuse_family(mechanism, family, reason));
        }
        drop((stream, listener));
        let carried = self.wait_for_bytes(host, before, CHECKED as u64)?;
        if carried < CHECKED as u64 {
            let reason = format!("{CHECKED} bytes arrived, and {mechanism} counts {carried}");
            return Err(refuse_family(mechanism, family, reason));
        }
        Ok(())
    }

    /// The bytes that it has carried since an earlier count, once they are as many as expected, or after a while: the
    /// kernel removes sockets a little after both ends have closed them.
    pub(crate) fn wait_for_bytes(
        &self,
        host: &Host,
        before: u64,
        expected: u64,
    ) -> Result<u64, TestbedError> {
        let start = Instant::now();
        loop {
            let carried = self.count_bytes(host)?.saturating_sub(before);
            if carried >= expected || start.elapsed() > TIMEOUT {
                return Ok(carried);
            }
            thread::sleep(POLL_INTERVAL);
        }
    }
}

/// Sends all bytes over a new connection, and returns where it came from. They are sent before it is accepted: pasta
/// may complete a connection to the container with its first bytes only.
fn exchange(stream: &mut TcpStream, listener: &TcpListener) -> Result<IpAddr, String> {
    thread::scope(|scope| {
        let writing = scope.spawn(|| {
            stream.set_write_timeout(Some(TIMEOUT))?;
            stream.write_all(&vec![7; CHECKED])
        });
        let source = accept_all(listener);
        let wrote = writing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        wrote.map_err(|error| format!("{CHECKED} bytes by TCP cannot be sent: {error}"))?;
        source.map_err(|error| format!("{CHECKED} bytes by TCP, to the host, did not arrive: {error}"))
    })
}

/// Accepts a connection, and reads all bytes. Returns where it came from.
fn accept_all(listener: &TcpListener) -> io::Result<IpAddr> {
    listener.set_nonblocking(true)?;
    let start = Instant::now();
    let (mut accepted, source) = loop {
        match listener.accept() {
            Err(error) if error.kind() == ErrorKind::WouldBlock && start.elapsed() < TIMEOUT => {
                thread::sleep(POLL_INTERVAL);
            }
            accepted => break accepted?,
        }
    };
    accepted.set_nonblocking(false)?;
    accepted.set_read_timeout(Some(TIMEOUT))?;
    accepted.read_exact(&mut vec![0; CHECKED])?;
    Ok(source.ip())
}

fn watch_sockets(host: &Host, container: Vec<IpAddr>) -> Result<AcknowledgedBytes, TestbedError> {
    host.inside(|| {
        AcknowledgedBytes::watch(container).attempt("listen for removed sockets (CONFIG_INET_TCP_DIAG)")
    })
}

fn start_docker_proxies(host: &mut Host, router: &Router, workdir: &Workdir) -> Result<(), TestbedError> {
    let program = publisher_program(Publisher::DockerProxy)?.expect("it is a program");
    for mut command in write_docker_proxies(&program, router) {
        start(host, DOCKER_PROXY, &mut command, workdir)?;
    }
    wait_until_listening(host, DOCKER_PROXY, workdir)
}

/// The device takes the place of the link to the host, whose end stays in the container without addresses.
fn start_pasta(
    network: &mut HostChain<4>,
    router: &Router,
    mtu: u32,
    workdir: &Workdir,
) -> Result<(), TestbedError> {
    let program = publisher_program(Publisher::Pasta)?.expect("it is a program");
    network.hosts[CONTAINER].inside(set_link_aside)?;
    let container = network.hosts[CONTAINER].pid();
    let host = &mut network.hosts[HOST];
    let mut pasta = write_pasta(&program, router, container, mtu).at(host.node())?;
    start(host, "pasta", &mut pasta.command, workdir)?;
    wait_until_listening(host, "pasta", workdir)?;
    let mechanism = router.mechanism;
    network.hosts[CONTAINER].inside(|| {
        switch_off_all(INTERFACE)?;
        configure_device(Site::Far, mechanism, mtu)?;
        Family::ALL.iter().try_for_each(|family| introduce(mechanism, *family))
    })
}

/// The same for a sender in a container.
fn start_slirp(
    network: &mut HostChain<4>,
    mechanism: Mechanism,
    mtu: u32,
    workdir: &Workdir,
) -> Result<(), TestbedError> {
    let program = publisher_program(Publisher::Slirp)?.expect("it is a program");
    network.hosts[SENDER].inside(set_link_aside)?;
    let container = network.hosts[SENDER].pid();
    let host = &mut network.hosts[SENDERS_HOST];
    let mut slirp = write_slirp(&program, mechanism, container, mtu).at(host.node())?;
    start(host, SLIRP, &mut slirp.command, workdir)?;
    let start = Instant::now();
    while network.hosts[SENDER].inside(|| index(INTERFACE).attempt("find the device")).is_err() {
        let lost = network.hosts[SENDERS_HOST].lost_companion();
        if lost.is_some() || start.elapsed() > TIMEOUT {
            let said = last_words(&workdir.path().join(SLIRP));
            let reason = lost.unwrap_or_else(|| "the container gets no device".to_owned());
            return Err(format!("{reason}{said}")).attempt("start slirp4netns").at(Site::Near.router());
        }
        thread::sleep(POLL_INTERVAL);
    }
    network.hosts[SENDER].inside(|| {
        switch_off_all(INTERFACE)?;
        configure_device(Site::Near, mechanism, mtu)
    })
}

/// The container gets a device of its host's middle link. Its own link to the host stays without addresses.
fn start_macvlan(network: &mut HostChain<4>, mechanism: Mechanism, mtu: u32) -> Result<(), TestbedError> {
    let container = &network.hosts[CONTAINER];
    container.inside(set_link_aside)?;
    network.hosts[HOST].inside(|| create_macvlan(container.pid(), mtu))?;
    container.inside(|| {
        name_device()?;
        if !network.offloads {
            send_single_segments()?;
        }
        configure_device(Site::Far, mechanism, mtu)
    })
}

/// Configures the device that takes the place of a client's link.
fn configure_device(site: Site, mechanism: Mechanism, mtu: u32) -> Result<(), Fault> {
    without_link_local(INTERFACE)?;
    raise(INTERFACE, mtu)?;
    configure_client(site, mechanism)?;
    wait_until_quiet(INTERFACE, &site.client_addresses(mechanism))
}

/// Sends a datagram from the container. Pasta sends IPv6 to the address from which it got packets last: to none before
/// the first, and it must not be a link-local one.
fn introduce(mechanism: Mechanism, family: Family) -> Result<(), Fault> {
    const DISCARD: u16 = 9;
    let ends = ends_of(CustomerId::FIRST, mechanism, family).expect("the family is carried");
    let socket = UdpSocket::bind((ends.receiver, 0)).attempt("open a socket in the container")?;
    let sent = socket.send_to(b"stacklab", (ends.source, DISCARD));
    sent.map(drop).attempt("send from the container")
}

fn set_link_aside() -> Result<(), Fault> {
    change(INTERFACE, "take down", |link| link.down())?;
    change(INTERFACE, "rename", |link| link.name(UNUSED.to_owned()))?;
    change(UNUSED, "raise", |link| link.up())
}

fn start(
    host: &mut Host,
    called: &'static str,
    command: &mut Command,
    workdir: &Workdir,
) -> Result<(), TestbedError> {
    let console = workdir.path().join(called);
    let said = File::options().create(true).append(true).open(&console);
    let said = said.attempt(format!("write {}", console.display())).at(host.node())?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
    host.start_companion(called, command, &[])
}

/// A port on which nobody listens yet. Docker's proxies have a socket for each family, and pasta one for both.
fn find_missing_socket(host: &Host, called: &str) -> Option<(Transport, u16)> {
    for transport in [Transport::Tcp, Transport::Udp] {
        for port in PORTS {
            let is_there = if called == DOCKER_PROXY {
                Family::ALL.iter().all(|family| is_listening_in(host.pid(), transport, *family, port))
            } else {
                is_listening(host.pid(), transport, port)
            };
            if !is_there {
                return Some((transport, port));
            }
        }
    }
    None
}

fn wait_until_listening(host: &mut Host, called: &str, workdir: &Workdir) -> Result<(), TestbedError> {
    let start = Instant::now();
    loop {
        let reason = match (host.lost_companion(), find_missing_socket(host, called)) {
            (None, None) => return Ok(()),
            (Some(lost), _) => lost,
            (None, Some((transport, port))) if start.elapsed() > TIMEOUT => {
                format!("nothing listens on {transport} port {port}")
            }
            (None, Some(_)) => {
                thread::sleep(POLL_INTERVAL);
                continue;
            }
        };
        let said = last_words(&workdir.path().join(called));
        return Err(format!("{reason}{said}")).attempt(format!("start {called}")).at(host.node());
    }
}
