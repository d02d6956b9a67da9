//! A relay in place of a listening agent: it forwards everything to a real agent, stores the requests, and may change
//! the answers.

use super::program::{KEY, Program};
use stacklab_agent::auth::Gate;
use stacklab_agent::channel::Channel;
use stacklab_agent::key::Key;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// The relay, for one coordinator.
pub(crate) struct Relay {
    pub port: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Relay {
    /// Listens on 127.0.0.1 for one coordinator.
    pub(crate) fn start(program: &Program, change: fn(String) -> String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port().to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let mut command = program.command(&["agent", "--stdio"]);
        let keep = Arc::clone(&asked);
        thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let gate = Gate::new(Some(Key::of(KEY, "the tests").unwrap()));
            let channel = Channel::from(stream.try_clone().unwrap());
            gate.admit(&channel, Duration::from_secs(10)).unwrap().unwrap().welcome(&channel).unwrap();
            let mut agent = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let mut input = agent.stdin.take().unwrap();
            let output = agent.stdout.take().unwrap();
            let mut answers = stream.try_clone().unwrap();
            let answering = thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    if writeln!(answers, "{}", change(line)).is_err() {
                        break;
                    }
                }
            });
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                writeln!(input, "{line}").unwrap();
                keep.lock().unwrap().push(line);
            }
            drop(input);
            answering.join().unwrap();
            agent.wait().unwrap();
        });
        Relay { port, asked }
    }

    /// Whether a request of that name was made.
    pub(crate) fn was_asked(&self, request: &str) -> bool {
        let start = format!("{{\"{request}\":");
        self.asked.lock().unwrap().iter().any(|line| line.contains(&start))
    }
}
