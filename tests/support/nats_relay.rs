//! A relay between clients and a server of NATS. It repeats messages that open a stream, and some others of the
//! server's, and can be cut.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// The relay. It ends with the test.
pub(crate) struct NatsRelay {
    /// Where it listens, on 127.0.0.1.
    pub port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    cut: AtomicBool,
    messages: AtomicU32,
    repeated: AtomicU32,
}

impl NatsRelay {
    /// Relays to the server at this port, and repeats one in `repeats` messages.
    pub(crate) fn start(server: u16, repeats: u32) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State::default());
        let relay = NatsRelay { port, state: Arc::clone(&state) };
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let server = TcpStream::connect((Ipv4Addr::LOCALHOST, server)).unwrap();
                let ends = [(&client, &server), (&server, &client)]
                    .map(|(from, to)| (from.try_clone().unwrap(), to.try_clone().unwrap()));
                let [(from_client, to_server), (from_server, to_client)] = ends;
                let states = [Arc::clone(&state), Arc::clone(&state)];
                let [upwards, downwards] = states;
                thread::spawn(move || {
                    let _ = upwards.pass(from_client, to_server, u32::MAX);
                });
                thread::spawn(move || {
                    let _ = downwards.pass(from_server, to_client, repeats);
                });
            }
        });
        relay
    }

    /// Cuts it, as a network that loses packets: what was sent arrives when it is healed, for TCP sends it again.
    pub(crate) fn cut(&self) {
        self.state.cut.store(true, Ordering::Relaxed);
    }

    /// Heals it.
    pub(crate) fn heal(&self) {
        self.state.cut.store(false, Ordering::Relaxed);
    }

    /// How many messages were repeated.
    pub(crate) fn repeated(&self) -> u32 {
        self.state.repeated.load(Ordering::Relaxed)
    }
}

impl State {
    /// Passes on what the one end says: lines, of which some announce a message.
    fn pass(&self, from: TcpStream, mut to: TcpStream, repeats: u32) -> io::Result<()> {
        let mut from = BufReader::new(from);
        loop {
            let mut bytes = Vec::new();
            if from.read_until(b'\n', &mut bytes)? == 0 {
                return to.shutdown(std::net::Shutdown::Both);
            }
            let line = String::from_utf8_lossy(&bytes).into_owned();
            let words: Vec<&str> = line.split_whitespace().collect();
            let is_message = ["MSG", "HMSG"].contains(&words[0]);
            if is_message || ["PUB", "HPUB"].contains(&words[0]) {
                let length: u64 = words[words.len() - 1].parse().unwrap();
                from.by_ref().take(length + 2).read_to_end(&mut bytes)?;
            }
            while self.cut.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(5));
            }
            to.write_all(&bytes)?;
            let is_chosen =
                is_message && self.messages.fetch_add(1, Ordering::Relaxed) % repeats == repeats - 1;
            if is_chosen || is_message && words[1].starts_with("stacklab.agent.") {
                self.repeated.fetch_add(1, Ordering::Relaxed);
                to.write_all(&bytes)?;
            }
        }
    }
}
