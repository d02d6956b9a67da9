//! Programs of a study's own: the commands of a server and of a client, and what stands for addresses in them.

use crate::{Family, Transport, nearest};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// A server and a client that a study compares with others. Both commands are read by a shell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramSpec {
    pub name: String,
    pub server: String,
    pub client: String,
    /// The server is ready once a socket of this protocol waits at the port.
    pub transport: Transport,
    pub port: u16,
    /// How long the client may take, nanoseconds.
    pub limit_ns: u64,
    /// How many requests a client is to make that asks for a number of them.
    #[serde(default)]
    pub requests: u64,
    /// Names of files in PATH without which it is left out.
    #[serde(default)]
    pub needs: Vec<String>,
    /// A command whose first line says the version of what it runs.
    #[serde(default)]
    pub version: Option<String>,
}

impl ProgramSpec {
    /// Whether the client makes as many requests as it is asked for.
    pub fn takes_requests(&self) -> bool {
        parts(&self.client).iter().any(|part| matches!(part, CommandPart::Placeholder(REQUESTS)))
    }
}

/// What the placeholders of a command are in a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProgramArguments {
    /// The server's address: in its own command the one that it has, in the client's the one that leads to it.
    pub host: IpAddr,
    pub port: u16,
    /// The length that the study gives to a run.
    pub seconds: f64,
    pub requests: u64,
}

const REQUESTS: &str = "requests";

/// The placeholders, and what they are.
pub const PROGRAM_PLACEHOLDERS: &[(&str, &str)] = &[
    ("host", "the server's address"),
    ("url_host", "the same, in brackets where it is of IPv6, as URLs have it"),
    ("port", "the port"),
    ("family", "4 or 6"),
    ("seconds", "the length of a run"),
    (REQUESTS, "the number of requests"),
];

impl ProgramArguments {
    fn value(&self, placeholder: &str) -> Option<String> {
        let family = Family::of(self.host);
        Some(match (placeholder, family) {
            ("host", _) | ("url_host", Family::Ipv4) => self.host.to_string(),
            ("url_host", Family::Ipv6) => format!("[{}]", self.host),
            ("port", _) => self.port.to_string(),
            ("family", Family::Ipv4) => "4".to_owned(),
            ("family", Family::Ipv6) => "6".to_owned(),
            ("seconds", _) => self.seconds.to_string(),
            (REQUESTS, _) => self.requests.to_string(),
            _ => return None,
        })
    }

    /// A command with what its placeholders are.
    pub fn fill(&self, command: &str) -> String {
        let mut filled = String::with_capacity(command.len());
        for part in parts(command) {
            match part {
                CommandPart::Text(text) => filled += text,
                CommandPart::Placeholder(name) => match self.value(name) {
                    Some(value) => filled += &value,
                    None => filled.extend(["{", name, "}"]),
                },
            }
        }
        filled
    }
}

/// The first `{word}` of a command that is nearly a placeholder, and that one. Others are the command's own, such as
/// those of `curl -w %{http_version}` or `awk {print}`.
pub fn misspelt_placeholder(command: &str) -> Option<(&str, &'static str)> {
    parts(command).into_iter().find_map(|part| {
        let CommandPart::Placeholder(name) = part else { return None };
        let known = PROGRAM_PLACEHOLDERS.iter().map(|(known, _)| *known);
        Some((name, nearest(name, known).filter(|near| *near != name)?))
    })
}

enum CommandPart<'a> {
    Text(&'a str),
    Placeholder(&'a str),
}

fn parts(command: &str) -> Vec<CommandPart<'_>> {
    let mut parts = Vec::new();
    let mut rest = command;
    let mut from = 0;
    while let Some(open) = rest[from..].find('{').map(|at| from + at) {
        let inside = &rest[open + 1..];
        let end = inside.find(|c: char| !c.is_ascii_lowercase() && c != '_').unwrap_or(inside.len());
        let is_other = rest[..open].ends_with(['$', '%']);
        if end == 0 || is_other || !inside[end..].starts_with('}') {
            from = open + 1;
            continue;
        }
        parts.extend([CommandPart::Text(&rest[..open]), CommandPart::Placeholder(&inside[..end])]);
        rest = &inside[end + 1..];
        from = 0;
    }
    parts.push(CommandPart::Text(rest));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(host: &str, command: &str) -> String {
        ProgramArguments { host: host.parse().unwrap(), port: 80, seconds: 0.5, requests: 7 }.fill(command)
    }

    #[test]
    fn placeholders_are_those_of_the_family() {
        let command = "curl -{family} http://{url_host}:{port}/ --for {seconds} -n {requests} # {host}";
        assert_eq!(fill("192.0.2.1", command), "curl -4 http://192.0.2.1:80/ --for 0.5 -n 7 # 192.0.2.1");
        assert_eq!(fill("fd00::1", command), "curl -6 http://[fd00::1]:80/ --for 0.5 -n 7 # fd00::1");
        assert_eq!(misspelt_placeholder(command), None);
    }

    #[test]
    fn a_shells_braces_stay() {
        for command in [
            "echo ${HOME} {} { true; }",
            "awk '{print $1}'; awk {print}",
            "echo {a,b} {",
            "curl -w %{port}",
            "{é} {{",
            "",
        ] {
            assert_eq!(fill("fd00::1", command), command);
            assert_eq!(misspelt_placeholder(command), None, "{command}");
        }
        assert_eq!(misspelt_placeholder("wget {host} {prot}"), Some(("prot", "port")));
        assert_eq!(fill("fd00::1", "{{port}}"), "{80}");
    }
}
