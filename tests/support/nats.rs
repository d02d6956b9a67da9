//! Real servers of NATS on loopback, as a cluster.

use super::nats_relay::NatsRelay;
use super::program::signal;
use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(20);
/// User and password of the fleet in the servers' configuration.
const ACCOUNT: &str = "fleet:of-the-tests";

/// A cluster. It ends with this.
pub(crate) struct Nats {
    folder: TempDir,
    /// The port of clients and of other servers.
    ports: Vec<[u16; 2]>,
    servers: Vec<Option<Child>>,
}

impl Nats {
    /// Starts this many servers, and waits until each one accepts clients.
    pub(crate) fn start(count: usize) -> Self {
        let folder = tempfile::Builder::new().prefix("stacklab-nats-").tempdir().unwrap();
        // Held until all are known, so that they differ.
        let held: Vec<TcpListener> =
            (0..2 * count).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()).collect();
        let ports: Vec<u16> = held.iter().map(|held| held.local_addr().unwrap().port()).collect();
        drop(held);
        let ports = ports.chunks(2).map(|pair| [pair[0], pair[1]]).collect();
        let mut nats = Nats { folder, ports, servers: (0..count).map(|_| None).collect() };
        (0..count).for_each(|number| nats.run(number));
        nats
    }

    /// Starts a server, and waits until it accepts clients.
    pub(crate) fn run(&mut self, number: usize) {
        let [client, cluster] = self.ports[number];
        let routes: Vec<String> =
            self.ports.iter().map(|[_, port]| format!("nats://127.0.0.1:{port}")).collect();
        let (user, password) = ACCOUNT.split_once(':').unwrap();
        let config = format!(
            "listen: 127.0.0.1:{client}\nserver_name: n{number}\n\
             authorization {{ users: [{{ user: {user}, password: {password} }}, {{ user: other, password: {password}, \
             permissions: {{ subscribe: [\"_INBOX.>\", stacklab.present, stacklab.agent.other] }} }}] }}\n\
             cluster {{ name: tests, listen: 127.0.0.1:{cluster}, no_advertise: true, routes: [{}] }}\n",
            routes.join(", ")
        );
        let path = self.folder.path().join(format!("n{number}.conf"));
        fs::write(&path, config).unwrap();
        let log = fs::File::create(self.folder.path().join(format!("n{number}.log"))).unwrap();
        let server =
            Command::new("nats-server").arg("-c").arg(&path).stdout(Stdio::null()).stderr(log).spawn();
        self.servers[number] =
            Some(server.expect("this test needs nats-server: apt-get install nats-server"));
        let begun = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, client)).is_err() {
            let log = fs::read_to_string(self.folder.path().join(format!("n{number}.log"))).unwrap();
            assert!(begun.elapsed() < LIMIT, "nats-server does not start:\n{log}");
            sleep(Duration::from_millis(20));
        }
    }

    /// Kills a server with SIGKILL.
    pub(crate) fn kill(&mut self, number: usize) {
        if let Some(mut server) = self.servers[number].take() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }

    /// Stops servers without ending them, as a network that is cut: nobody hears of it.
    pub(crate) fn cut(&self, numbers: &[usize]) {
        numbers.iter().for_each(|number| self.signal(*number, "STOP"));
    }

    /// Lets them go on.
    pub(crate) fn heal(&self, numbers: &[usize]) {
        numbers.iter().for_each(|number| self.signal(*number, "CONT"));
    }

    fn signal(&self, number: usize, name: &str) {
        if let Some(server) = &self.servers[number] {
            signal(server.id(), name);
        }
    }

    /// How many servers there are.
    pub(crate) fn count(&self) -> usize {
        self.servers.len()
    }

    /// The address of all servers, with user and password.
    pub(crate) fn address(&self) -> String {
        self.address_as(ACCOUNT)
    }

    /// The address of the first server behind a relay, with user and password; and the relay, which repeats one of so
    /// many messages.
    pub(crate) fn relayed(&self, repeats: u32) -> (String, NatsRelay) {
        let relay = NatsRelay::start(self.ports[0][0], repeats);
        (format!("nats://{ACCOUNT}@127.0.0.1:{}", relay.port), relay)
    }

    /// The address of all servers for somebody else.
    pub(crate) fn address_as(&self, account: &str) -> String {
        let urls: Vec<String> =
            self.ports.iter().map(|[port, _]| format!("nats://{account}@127.0.0.1:{port}")).collect();
        urls.join(",")
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        (0..self.count()).for_each(|number| self.kill(number));
    }
}
