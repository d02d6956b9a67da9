//! Agents behind NATS: every host dials out to its servers, so none needs an open port.
//!
//! NATS delivers each message at most once. A stream numbers its messages, so that a lost one ends it; the block is
//! then measured again. Nothing depends on a message that a server keeps.

use crate::FleetError;
use crate::message::{Answer, Presence, Request};
use crate::wire::Wire;
use crate::wire::nats_stream::{Incoming, Outgoing};
use async_nats::{Client, ConnectOptions, ServerAddr, Subscriber};
use futures_util::StreamExt;
use stacklab_model::say;
use stacklab_testbed::Streams;
use stacklab_traffic::host::files::read_text_file;
use stacklab_traffic::protocol::json_line;
use stacklab_traffic::waiting::WaitNotice;
use std::collections::BTreeSet;
use std::io::{Cursor, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Subject on which all agents are asked who is there.
const PRESENT: &str = "stacklab.present";
const PRESENT_LIMIT: Duration = Duration::from_secs(1);
/// The oldest server that is tested, and what a message may take there, bytes: a piece of a stream, or a presence.
const OLDEST: [u32; 2] = [2, 9];
const MAX_PAYLOAD: usize = 1 << 20;
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
const OPEN_LIMIT: Duration = Duration::from_secs(5);
/// How long an agent waits for the request of a stream, and then for a sender, which may be gone or in a long trial:
/// nobody hears of a peer that was killed.
const SERVED_LIMITS: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(24 * 3600)];
/// What the subjects of answers begin with.
const INBOX: &str = "_INBOX.";
const POLL: Duration = Duration::from_millis(50);
const MAX_PRESENCE: usize = MAX_PAYLOAD;

/// A connection to NATS.
pub struct NatsWire {
    runtime: Runtime,
    client: Client,
    servers: String,
}

impl NatsWire {
    /// Connects to one of these servers: `nats://host:4222`, or `tls://..`, several with commas. Later it connects
    /// again whenever the connection is lost. An agent gives its name: what it is answered comes to subjects below
    /// that name, which the credentials of other agents cannot read.
    pub fn connect(
        servers: &str,
        credentials: Option<&Path>,
        agent: Option<&str>,
    ) -> Result<Self, FleetError> {
        let runtime =
            Builder::new_multi_thread().worker_threads(1).enable_all().build().map_err(|reason| {
                FleetError::System { attempted: "start the threads of NATS".to_owned(), reason }
            })?;
        let urls: Vec<&str> = servers.split(',').map(str::trim).collect();
        let shown = urls.iter().map(|url| without_password(url)).collect::<Vec<_>>().join(",");
        let (user, password) = account(urls[0])?;
        let notice = WaitNotice::within(&format!("NATS at {shown} to answer"), CONNECT_LIMIT);
        let client = runtime.block_on(async {
            let mut options = ConnectOptions::new().name("stacklab fleet").connection_timeout(CONNECT_LIMIT);
            options = options.custom_inbox_prefix(match agent {
                Some(agent) => format!("{INBOX}agent.{agent}"),
                None => format!("{INBOX}coordinator"),
            });
            if !user.is_empty() {
                options = options.user_and_password(user, password);
            }
            if let Some(path) = credentials {
                let text = read_text_file(path);
                options = text.and_then(|text| options.credentials(&text)).map_err(|reason| {
                    FleetError::Usage(format!("could not read the credentials {}: {reason}", path.display()))
                })?;
            }
            options.connect(urls).await.map_err(|error| FleetError::Wire {
                servers: shown.clone(),
                reason: format!("{error}; check the address, and --creds"),
            })
        })?;
        drop(notice);
        Ok(NatsWire { runtime, client, servers: shown })
    }

    fn lost(&self, reason: impl std::fmt::Display) -> FleetError {
        FleetError::Wire { servers: self.servers.clone(), reason: reason.to_string() }
    }

    fn subscribe(&self, subject: String) -> Result<Subscriber, FleetError> {
        self.runtime.block_on(async {
            let subscriber = self.client.subscribe(subject).await.map_err(|error| self.lost(error))?;
            self.client.flush().await.map_err(|error| self.lost(error))?;
            Ok(subscriber)
        })
    }

    fn incoming(&self, subscriber: Subscriber, limits: [Duration; 2]) -> Incoming {
        Incoming::new(self.runtime.handle(), subscriber, limits)
    }

    fn outgoing(&self, subject: String) -> Box<dyn Write + Send> {
        Box::new(Outgoing::new(self.runtime.handle().clone(), self.client.clone(), subject))
    }

    fn streams_of(&self, message: Reached) -> Result<Streams, FleetError> {
        match message {
            Reached::Asked { reply } => {
                let request = json_line(&Request::Describe).map_err(|error| self.lost(error))?;
                let answer = Reply {
                    wire: (self.runtime.handle().clone(), self.client.clone()),
                    reply,
                    line: Vec::new(),
                };
                Ok((Box::new(Cursor::new(request)), Box::new(answer)))
            }
            Reached::Opened { reply, theirs } => {
                let own = self.client.new_inbox();
                let subscriber = self.subscribe(own.clone())?;
                let client = self.client.clone();
                self.runtime
                    .block_on(async { client.publish(reply, own.into()).await })
                    .map_err(|error| self.lost(error))?;
                Ok((Box::new(self.incoming(subscriber, SERVED_LIMITS)), self.outgoing(theirs)))
            }
        }
    }
}

enum Reached {
    Asked { reply: String },
    Opened { reply: String, theirs: String },
}

impl NatsWire {
    /// Listens for coordinators that ask who is there, or open a stream to this agent, until nobody receives them.
    fn listen(&self, agent: &str) -> Result<Receiver<Reached>, FleetError> {
        let (sender, reached) = mpsc::channel();
        let mut opened = self.subscribe(subject(agent))?;
        let mut asked = self.subscribe(PRESENT.to_owned())?;
        let own = agent.to_owned();
        self.runtime.spawn(async move {
            loop {
                let heard = tokio::select! {
                    message = opened.next() => message.map(|message| {
                        let theirs = String::from_utf8_lossy(&message.payload).into_owned();
                        let reply = message.reply?.to_string();
                        theirs.starts_with(INBOX).then_some(Reached::Opened { reply, theirs })
                    }),
                    message = asked.next() => message.map(|message| {
                        // Who measures is silent.
                        let busy: BTreeSet<String> = serde_json::from_slice(&message.payload).unwrap_or_default();
                        let reply = message.reply?.to_string();
                        (!busy.contains(&own)).then_some(Reached::Asked { reply })
                    }),
                };
                let Some(heard) = heard else { break };
                if heard.is_some_and(|heard| sender.send(heard).is_err()) {
                    break;
                }
            }
        });
        Ok(reached)
    }
}

impl Wire for NatsWire {
    fn present(&self, busy: &BTreeSet<String>) -> Result<Vec<Presence>, FleetError> {
        // A subscription ends in the runtime.
        let _inside = self.runtime.enter();
        let inbox = self.client.new_inbox();
        let mut answers = self.subscribe(inbox.clone())?;
        let question = serde_json::to_vec(busy).expect("names are JSON");
        let mut found: Vec<Presence> = self.runtime.block_on(async {
            self.client
                .publish_with_reply(PRESENT, inbox, question.into())
                .await
                .map_err(|error| self.lost(error))?;
            self.client.flush().await.map_err(|error| self.lost(error))?;
            let mut found = Vec::new();
            let ends = tokio::time::Instant::now() + PRESENT_LIMIT;
            while let Ok(Some(message)) = tokio::time::timeout_at(ends, answers.next()).await {
                // Without an agent, the server answers itself, with nothing.
                if let Ok(Answer::Presence(presence)) =
                    Answer::read(&String::from_utf8_lossy(&message.payload))
                {
                    found.push(presence);
                }
            }
            Ok::<_, FleetError>(found)
        })?;
        found.sort_by(|one, other| one.agent.name.cmp(&other.agent.name));
        found.dedup_by(|one, other| one.agent.name == other.agent.name);
        Ok(found)
    }

    fn safety(&self) -> Vec<(bool, String)> {
        let info = self.client.server_info();
        let parts: Vec<u32> = info.version.split(['.', '-']).map_while(|part| part.parse().ok()).collect();
        let is_new = parts.as_slice() >= &OLDEST[..];
        let is_near = self.servers.split(',').all(|server| {
            let host = server.split("://").last().unwrap_or_default();
            ["127.", "localhost", "[::1]"].iter().any(|near| host.starts_with(near))
        });
        let version = &info.version;
        let payload = info.max_payload;
        let auth = "it asks for credentials: otherwise anybody could use the agents";
        let tls = "the connection is encrypted (tls://), or stays on this machine";
        vec![
            (is_new, format!("NATS at {}: nats-server {version}; 2.9 or newer is tested", self.servers)),
            (
                payload >= MAX_PAYLOAD,
                format!("its max_payload is {payload} bytes; {MAX_PAYLOAD} or more are needed"),
            ),
            (info.auth_required, auth.to_owned()),
            (info.tls_required || is_near, tls.to_owned()),
        ]
    }

    fn open(&self, agent: &str, limit: Duration) -> Result<Streams, FleetError> {
        let _inside = self.runtime.enter();
        let own = self.client.new_inbox();
        let subscriber = self.subscribe(own.clone())?;
        let asked = self.runtime.block_on(async {
            let request = self.client.request(subject(agent), own.into());
            tokio::time::timeout(OPEN_LIMIT, request).await
        });
        let theirs = match asked {
            Ok(Ok(message)) => String::from_utf8_lossy(&message.payload).into_owned(),
            Ok(Err(error)) => {
                return Err(FleetError::agent(agent, format!("it cannot be reached over NATS: {error}")));
            }
            Err(_) => return Err(FleetError::agent(agent, "it does not answer over NATS")),
        };
        if !theirs.starts_with(INBOX) {
            return Err(FleetError::agent(agent, "its answer over NATS is not one of this version"));
        }
        Ok((Box::new(self.incoming(subscriber, [limit; 2])), self.outgoing(theirs)))
    }

    fn serve(
        &self,
        agent: &str,
        handle: &(dyn Fn(Streams) + Sync),
        ready: &(dyn Fn() + Sync),
        interrupted: &AtomicBool,
    ) -> Result<(), FleetError> {
        if self.open(agent, OPEN_LIMIT).is_ok() {
            return Err(FleetError::Usage(format!(
                "an agent named {agent} is there already: choose another --name"
            )));
        }
        let reached = self.listen(agent)?;
        thread::scope(|scope| {
            // A server answers a subscription that it refuses with nothing.
            let tried = scope.spawn(|| self.open(agent, OPEN_LIMIT).map(|_| ready()));
            let mut tried = Some(tried);
            while !interrupted.load(Ordering::Relaxed) {
                match reached.recv_timeout(POLL) {
                    Ok(message) => {
                        scope.spawn(move || match self.streams_of(message) {
                            Ok(streams) => handle(streams),
                            Err(error) => say!("stacklab: {error}"),
                        });
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return Err(self.lost("the connection has ended")),
                }
                if let Some(done) = tried.take_if(|tried| tried.is_finished())
                    && !matches!(done.join(), Ok(Ok(())))
                {
                    let reason = format!(
                        "it cannot be reached by this name through {}: its credentials may be those of another agent",
                        self.servers
                    );
                    return Err(FleetError::agent(agent, reason));
                }
            }
            Ok(())
        })
    }
}

/// User and password of an address; empty where it has none.
fn account(url: &str) -> Result<(String, String), FleetError> {
    let address: ServerAddr = url.parse().map_err(|error| {
        FleetError::Usage(format!("`{}` is not an address of NATS: {error}", without_password(url)))
    })?;
    let user = address.username().unwrap_or_default().to_owned();
    let password = address.password().unwrap_or_default().to_owned();
    Ok((user, password))
}

/// An agent's subject. Its name was checked.
fn subject(agent: &str) -> String {
    format!("stacklab.agent.{agent}")
}

/// The answer to a question without a stream: one message, when it is whole.
struct Reply {
    wire: (tokio::runtime::Handle, Client),
    reply: String,
    line: Vec<u8>,
}

impl Write for Reply {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.line.len() + bytes.len() > MAX_PRESENCE {
            return Err(std::io::Error::other("the answer is too long for one message"));
        }
        self.line.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let (runtime, client) = &self.wire;
        let reply = self.reply.clone();
        let line = std::mem::take(&mut self.line);
        runtime.block_on(client.publish(reply, line.into())).map_err(std::io::Error::other)
    }
}

/// Whether an address of NATS has a user, with a password or a token.
pub fn has_account(servers: &str) -> bool {
    servers.split(',').any(|url| without_password(url) != url)
}

/// An address without user and password.
fn without_password(url: &str) -> String {
    match (url.find("://"), url.rfind('@')) {
        (Some(scheme), Some(at)) if at > scheme => format!("{}{}", &url[..scheme + 3], &url[at + 1..]),
        _ => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_in_no_message() {
        assert_eq!(without_password("nats://me:secret@host:4222"), "nats://host:4222");
        assert_eq!(without_password("host:4222"), "host:4222");
        assert!(has_account("nats://a:4222,tls://token@b") && !has_account("nats://a:4222,tls://b"));
        let error = NatsWire::connect("nats://me:secret@127.0.0.1:1", None, None).err().unwrap().to_string();
        assert!(error.contains("nats://127.0.0.1:1") && !error.contains("secret"), "{error}");
    }
}
