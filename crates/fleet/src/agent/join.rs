//! The receiver's part of a block: a process that obeys the sender's agent, within the limits of this block.

use crate::FleetError;
use crate::agent::{FleetAgent, failed};
use crate::message::{Answer, JoinOrder};
use stacklab_testbed::{AGENT, write_message};
use std::io::{self, Read, Write};
use std::process::{Command, Stdio};
use std::thread;

/// How long the sender may ask nothing, seconds.
const IDLE: u32 = 60;

impl FleetAgent {
    /// Answers whether this agent takes part, and then serves the stream until the sender ends it.
    pub(super) fn take_part(
        &self,
        order: &JoinOrder,
        mut reader: impl Read + Send + 'static,
        mut writer: Box<dyn Write + Send>,
    ) -> Result<(), FleetError> {
        let joined = || {
            let lease = self.fence.take(&order.key, order.class, order.lease)?;
            self.check_allowed(order.sender.values())?;
            let mut command = Command::new(std::env::current_exe().map_err(failed("find this program"))?);
            command.args(AGENT).arg(format!("--idle-timeout={IDLE}"));
            command.arg(format!("--max-duration={}", order.lease.as_secs().max(1)));
            command.args(order.sender.values().map(|address| format!("--peer={address}")));
            command.args(self.info.addresses.values().map(|address| format!("--own={address}")));
            let process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
            Ok::<_, FleetError>((lease, process.map_err(failed("start an agent"))?))
        };
        let (lease, mut process) = match joined() {
            Ok(joined) => joined,
            Err(error) => {
                let answer = self.failure(error);
                return write_message(&mut writer, &answer).map_err(failed("answer"));
            }
        };
        let (mut input, mut output) =
            process.stdin.take().zip(process.stdout.take()).expect("both are pipes");
        write_message(&mut writer, &Answer::Joined).map_err(failed("answer"))?;
        // When the sender ends, so does the input of the process, and then the process.
        thread::spawn(move || {
            let _ = copy(&mut reader, &mut input);
        });
        let copied = copy(&mut output, &mut writer);
        drop(lease);
        if copied.is_err() {
            let _ = process.kill();
        }
        process.wait().map(drop).map_err(failed("wait for an agent"))
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
