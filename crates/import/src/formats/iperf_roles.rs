//! Which end of iperf 2 a process is that a file is of, and who began a connection. With `-r` and `-d` the client
//! listens too, and the server connects to it: then a heading of the other end stands in each file.

use super::iperf_groups::{Head, canonical};
use std::collections::HashSet;

/// Who began a connection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Origin {
    /// The client, as usual.
    Client,
    /// The server, to a client that listens.
    Server,
}

/// What is known of a process by its headings and connections.
#[derive(Default)]
pub(super) struct IperfProcess {
    /// The port on which it listens.
    listening: Option<String>,
    is_client: bool,
    /// Whether it accepted a connection before it connected to another.
    is_server: bool,
    /// Its heading as a server.
    head: Head,
    /// The hosts and the connections that it accepted as a server.
    hosts: HashSet<String>,
    names: HashSet<String>,
}

impl IperfProcess {
    /// It listens: a process begins.
    pub(super) fn listen(&mut self, port: &str) {
        *self = IperfProcess { listening: Some(port.to_owned()), ..IperfProcess::default() };
    }

    pub(super) fn connect(&mut self) {
        self.is_client = true;
    }

    /// It failed: what comes is of another process.
    pub(super) fn end(&mut self) {
        self.is_client = false;
    }

    /// Whether a connection came to the port on which it listens.
    fn listens_on(&self, port: &str) -> bool {
        self.listening.as_deref() == Some(port)
    }

    /// Who began a connection to or from this process. `head` is the last heading.
    pub(super) fn find_origin(&mut self, name: &str, peer: &str, port: &str, head: &Head) -> Origin {
        let has_accepted = self.listens_on(port);
        if has_accepted && !self.is_client {
            self.is_server = true;
        }
        if has_accepted && self.is_server {
            if head.is_server {
                self.head = head.clone();
            }
            self.hosts.insert(canonical(peer));
            self.names.insert(name.to_owned());
            return Origin::Client;
        }
        if has_accepted {
            return Origin::Server;
        }
        // It connects to a host that tests it. A connection that it accepted is in the file of its client, which may
        // follow in the same text.
        let is_answer = self.hosts.contains(&canonical(peer)) && !self.names.contains(name);
        if self.is_server && !head.is_server && is_answer { Origin::Server } else { Origin::Client }
    }

    pub(super) fn is_server(&self) -> bool {
        self.is_server
    }

    /// Its heading as a server, for a connection that it accepted behind a heading of its client.
    pub(super) fn find_head(&self, port: &str, head: &Head) -> Option<&Head> {
        let has_other_head = self.is_server && !head.is_server && self.listens_on(port);
        has_other_head.then_some(&self.head)
    }
}
