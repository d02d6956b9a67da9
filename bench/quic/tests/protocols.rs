//! The program as server and client on loopback.

use std::net::UdpSocket;
use std::process::{Child, Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_stacklab-quic");

const LIMIT: Duration = Duration::from_secs(60);

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn get(protocol: &str, address: &str, megabytes: &str) -> Output {
    Command::new(PROGRAM).args([protocol, "get", address, megabytes]).output().unwrap()
}

/// What a client gets, and from which address. The port was free a moment before; where another program has it, another
/// one is tried.
fn get_from_new_server(protocol: &str, host: &str) -> (String, Output) {
    let start = Instant::now();
    loop {
        let address = UdpSocket::bind(format!("{host}:0")).unwrap().local_addr().unwrap().to_string();
        let mut server = Server(Command::new(PROGRAM).args([protocol, "serve", &address]).spawn().unwrap());
        loop {
            let got = get(protocol, &address, "3");
            if got.status.success() || start.elapsed() > LIMIT {
                return (address, got);
            }
            if server.0.try_wait().unwrap().is_some() {
                break;
            }
            sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn both_protocols_carry_what_was_asked_for() {
    for host in ["127.0.0.1", "[::1]"] {
        for protocol in ["tls", "quic"] {
            let (address, got) = get_from_new_server(protocol, host);
            assert_eq!(String::from_utf8_lossy(&got.stdout), "3 MB\n", "{protocol} {address}: {got:?}");
        }
    }
}

#[test]
fn a_client_without_a_server_says_so() {
    let refused = get("tls", "127.0.0.1:1", "3");
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stdout).contains("tls 127.0.0.1:1: "), "{refused:?}");
}
