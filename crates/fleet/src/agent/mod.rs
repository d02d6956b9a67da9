//! An agent of a fleet: it measures the blocks that it is asked for, keeps their results until they are committed, and
//! is the last to refuse two blocks at the same time.

mod block;
mod held;

use crate::FleetError;
use crate::message::{Answer, JoinOrder, MAX_REQUEST_LENGTH, Order, Presence, Request};
use crate::pairs::now_ns;
use crate::store::AgentInfo;
use crate::wire::Wire;
use held::{Kept, Lease, Leases};
use stacklab_model::say;
use stacklab_testbed::{AGENT, Streams, write_message};
use stacklab_traffic::agent::Network;
use stacklab_traffic::protocol::Lines;
use std::io::{self, BufReader, Read, Write};
use std::net::IpAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

/// How long the sender of a block may ask its receiver nothing, seconds.
const IDLE: u32 = 60;

/// An agent.
pub struct FleetAgent {
    info: AgentInfo,
    wire: Arc<dyn Wire>,
    leases: Leases,
    kept: Kept,
    /// The networks of the hosts that it exchanges traffic with; `None`: any.
    allowed: Option<Vec<Network>>,
    interrupted: &'static AtomicBool,
}

impl FleetAgent {
    /// An agent that keeps results in this folder.
    pub fn new(
        info: AgentInfo,
        wire: Arc<dyn Wire>,
        folder: &Path,
        allowed: Option<Vec<Network>>,
        interrupted: &'static AtomicBool,
    ) -> Result<Self, FleetError> {
        let kept = Kept::new(folder)?;
        Ok(FleetAgent { info, wire, leases: Leases::default(), kept, allowed, interrupted })
    }

    /// Serves until it is interrupted. Calls `ready` when it can be reached.
    pub fn run(&self, ready: &(dyn Fn() + Sync)) -> Result<(), FleetError> {
        self.wire.serve(&self.info.name, &|streams| self.handle(streams), ready, self.interrupted)
    }

    fn handle(&self, (reader, mut writer): Streams) {
        let mut reader = BufReader::new(reader);
        let line = Lines::new(&mut reader, MAX_REQUEST_LENGTH).next();
        let Some(Ok(line)) = line else { return };
        let answer = match Request::read(&line) {
            Ok(Request::Join(order)) => {
                let joined = self.take_part(&order, reader, writer);
                return joined.unwrap_or_else(|reason| say!("stacklab: block {}: {reason}", order.key));
            }
            Ok(request) => self.answer(request),
            Err(error) => {
                self.failure(FleetError::Usage(format!("{error}; it is stacklab {}", self.info.version)))
            }
        };
        // A coordinator that is gone asks again.
        let _ = write_message(&mut writer, &answer);
    }

    fn answer(&self, request: Request) -> Answer {
        let answered = match request {
            Request::Describe => self.presence().map(Answer::Presence),
            Request::Measure(order) => self.measure(&order),
            Request::Fetch(key) => self.kept.get(&key).map(|result| Answer::Measured(Box::new(result))),
            Request::Forget(key) => self.kept.forget(&key).map(|()| Answer::Forgotten),
            Request::Join(_) => Err(FleetError::Usage("a stream is joined once".to_owned())),
        };
        answered.unwrap_or_else(|error| self.failure(error))
    }

    fn failure(&self, error: FleetError) -> Answer {
        match error {
            FleetError::Agent { agent, reason } => Answer::Failed { agent, reason },
            error => Answer::Failed { agent: self.info.name.clone(), reason: error.to_string() },
        }
    }

    fn presence(&self) -> Result<Presence, FleetError> {
        // In this order: a block that ends in between is in one of both.
        let held = self.leases.keys();
        Ok(Presence { agent: self.info.clone(), now_ns: now_ns(), held, kept: self.kept.keys()? })
    }

    fn measure(&self, order: &Order) -> Result<Answer, FleetError> {
        let _lease = self.leases.take(&order.key, order.class, order.lease)?;
        self.check_traffic_addresses(order.receiver.addresses.values())?;
        let result = block::measure(order, &self.info, &*self.wire, self.interrupted)?;
        self.kept.put(&order.key, &result)?;
        Ok(Answer::Measured(Box::new(result)))
    }

    /// Takes part in a block as its receiver: a process obeys the sender's agent, within the limits of the block, until
    /// the sender ends the stream.
    fn take_part(
        &self,
        order: &JoinOrder,
        mut reader: impl Read + Send + 'static,
        mut writer: Box<dyn Write + Send>,
    ) -> Result<(), FleetError> {
        let (lease, mut process) = match self.start_receiver(order) {
            Ok(started) => started,
            Err(error) => {
                let answer = self.failure(error);
                return write_message(&mut writer, &answer).map_err(describe_failure("answer"));
            }
        };
        let (mut input, mut output) =
            process.stdin.take().zip(process.stdout.take()).expect("both are pipes");
        write_message(&mut writer, &Answer::Joined).map_err(describe_failure("answer"))?;
        // When the sender ends, so does the input of the process, and then the process.
        thread::spawn(move || {
            let _ = copy(&mut reader, &mut input);
        });
        let copied = copy(&mut output, &mut writer);
        drop(lease);
        if copied.is_err() {
            let _ = process.kill();
        }
        process.wait().map(drop).map_err(describe_failure("wait for an agent"))
    }

    fn start_receiver(&self, order: &JoinOrder) -> Result<(Lease<'_>, Child), FleetError> {
        let lease = self.leases.take(&order.key, order.class, order.lease)?;
        self.check_traffic_addresses(order.sender.values())?;
        let mut command =
            Command::new(std::env::current_exe().map_err(describe_failure("find this program"))?);
        command.args(AGENT).arg(format!("--idle-timeout={IDLE}"));
        command.arg(format!("--max-duration={}", order.lease.as_secs().max(1)));
        command.args(order.sender.values().map(|address| format!("--peer={address}")));
        command.args(self.info.addresses.values().map(|address| format!("--own={address}")));
        let process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        Ok((lease, process.map_err(describe_failure("start an agent"))?))
    }

    /// Whether these addresses are all in the networks that its operator allows.
    fn check_traffic_addresses<'a>(
        &self,
        addresses: impl IntoIterator<Item = &'a String>,
    ) -> Result<(), FleetError> {
        let Some(allowed) = &self.allowed else { return Ok(()) };
        for text in addresses {
            let address: Option<IpAddr> = text.parse().ok();
            if !address.is_some_and(|address| allowed.iter().any(|network| network.holds(address))) {
                let reason = format!("it refuses traffic with {text}: its --allow-target does not have it");
                return Err(FleetError::agent(&self.info.name, reason));
            }
        }
        Ok(())
    }
}

/// Each piece is sent at once: somebody waits for it.
fn copy(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            n => to.write_all(&buffer[..n]).and_then(|()| to.flush())?,
        }
    }
}

fn describe_failure(attempted: &'static str) -> impl Fn(io::Error) -> FleetError {
    move |reason| FleetError::System { attempted: attempted.to_owned(), reason }
}
