//! The process of an agent: this program, or ssh to another machine.

use crate::CampaignError;
use stacklab_testbed::{AGENT, Streams};
use stacklab_traffic::protocol::AgentClient;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::atomic::AtomicBool;

/// A running agent. It is killed when this is dropped.
pub struct AgentProcess(Child);

impl AgentProcess {
    /// Starts an agent that speaks on its standard input and output. Returns these too.
    pub(crate) fn spawn(command: &mut Command) -> io::Result<(Self, Streams)> {
        // The agent does not receive Ctrl-C from the terminal: this process does. The agent ends when its input does.
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0).spawn()?;
        let (output, input) = child.stdout.take().zip(child.stdin.take()).expect("both are pipes");
        Ok((AgentProcess(child), (Box::new(output), Box::new(input))))
    }

    /// Starts an agent on this host, separate from this process so that its CPU time and memory are counted separately.
    pub fn here(interrupted: &'static AtomicBool) -> Result<(Self, AgentClient), CampaignError> {
        let started = std::env::current_exe()
            .and_then(|program| AgentProcess::spawn(Command::new(program).args(AGENT)))
            .map_err(|reason| CampaignError::System { attempted: "start an agent on this host", reason });
        let (process, (output, input)) = started?;
        Ok((process, AgentClient::new("this host", output, input, interrupted)))
    }

    /// Its standard error, if the command has a pipe there that was not taken.
    pub(crate) fn take_errors(&mut self) -> Option<ChildStderr> {
        self.0.stderr.take()
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        // It may have ended already. The end of ssh ends the agent on the other machine, by the end of its input.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
