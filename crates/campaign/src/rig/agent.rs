//! Agents: as a process of this program, and this program's copies on other machines.

use crate::CampaignError;
use crate::rig::ssh::{COPY_TIMEOUT, ask, ask_with, format_machine_text};
use stacklab_guests::image::sha256;
use stacklab_model::{System, say_part};
use stacklab_testbed::{AGENT, Streams};
use stacklab_traffic::host::files::wait_for_user;
use stacklab_traffic::protocol::AgentClient;
use std::fs::File;
use std::io::{self, BufRead, IsTerminal, Write};
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
        let program = crate::own_program()?;
        let started = AgentProcess::spawn(Command::new(program).args(AGENT))
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

/// Where this program installs itself on another machine, below the user's home.
const FOLDER: &str = ".cache/stacklab/bin";
/// The output of `stacklab --version`.
const OWN_VERSION: &str = concat!("stacklab ", env!("CARGO_PKG_VERSION"));
/// The copy, for a shell on the other machine.
const COPY: &str = concat!("\"$HOME/.cache/stacklab/bin/stacklab-", env!("CARGO_PKG_VERSION"), "\"");

/// The command of this version of the program on another machine, for a shell there; copies it there if it is missing.
/// Unless that is `allowed`, the user is asked.
pub(super) fn agent_on(host: &str, allowed: bool) -> Result<&'static str, CampaignError> {
    let system = System::Ssh(host.to_owned());
    let program = crate::own_program()?;
    let own = sha256(&program).map_err(explain_unread)?;
    let look = format!(
        "stacklab --version 2>/dev/null; if [ -e {COPY} ]; then echo \"copy $(sha256sum < {COPY} 2>/dev/null)\"; fi; true"
    );
    let missing = match choose_command(&ask(&system, &[&look], "look for stacklab")?, &own) {
        Ok(command) => return Ok(command),
        Err(missing) => missing,
    };
    if !allowed && !ask_user(&format!("{host}: {missing}. Copy this version to ~/{FOLDER}?")) {
        return Err(CampaignError::Unreachable(format!(
            "no agent of this version ({OWN_VERSION}) is on {system}: {missing}; copy it with --copy-agent, or install it"
        )));
    }
    let program = File::open(program).map_err(explain_unread)?;
    // Under a temporary name until it is complete.
    let take = format!(
        "umask 077 && mkdir -p \"$HOME/{FOLDER}\" && cat > {COPY}.part && chmod 700 {COPY}.part && mv {COPY}.part {COPY}"
    );
    ask_with(&system, &[&take], program, COPY_TIMEOUT, "put stacklab")?;
    let runs = ask(&system, &[&format!("{COPY} --version 2>&1; true")], "try stacklab")?;
    if runs.trim() == OWN_VERSION {
        return Ok(COPY);
    }
    Err(CampaignError::Unreachable(format!(
        "the program copied to {system} does not run there: check its architecture and C library"
    )))
}

fn explain_unread(reason: io::Error) -> CampaignError {
    CampaignError::System { attempted: "read this program", reason }
}

/// The command by what the machine found: the version of a program, and `copy` with its digest; or why there is none.
fn choose_command(output: &str, own: &str) -> Result<&'static str, String> {
    if output.lines().any(|line| line.trim() == OWN_VERSION) {
        return Ok("stacklab");
    }
    let digest = output.lines().find_map(|line| line.strip_prefix("copy "));
    let other = output.lines().find(|line| !line.starts_with("copy "));
    match (other, digest) {
        (_, Some(digest)) if digest.split_whitespace().next() == Some(own) => Ok(COPY),
        (_, Some(_)) => Err("the copy of stacklab there is not this program".to_owned()),
        (Some(other), _) => {
            Err(format!("another version of stacklab is there ({})", format_machine_text(other)))
        }
        (None, None) => Err("stacklab is not there".to_owned()),
    }
}

fn ask_user(question: &str) -> bool {
    if !io::stdin().is_terminal() {
        return false;
    }
    say_part!("{question} [y/N] ");
    let _ = io::stderr().flush();
    let mut answer = String::new();
    wait_for_user(|| io::stdin().lock().read_line(&mut answer)).is_ok()
        && matches!(answer.trim(), "y" | "Y" | "yes")
}

/// Removes every copy of this program that was put on a machine, of any version. Returns their names.
pub fn remove_copies(system: &System) -> Result<Vec<String>, CampaignError> {
    let remove = format!(
        "cd \"$HOME/{FOLDER}\" 2>/dev/null || exit 0; for copy in stacklab-*; do if [ -f \"$copy\" ]; then rm -f -- \"$copy\" && echo \"$copy\" || exit 1; fi; done; \
         cd ..; rmdir bin 2>/dev/null && cd .. && rmdir stacklab 2>/dev/null; true"
    );
    let removed = ask(system, &[&remove], "remove stacklab")?;
    Ok(removed.lines().map(|name| format!("~/{FOLDER}/{}", format_machine_text(name))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reuses_a_copy_by_content_and_an_install_by_version() {
        assert_eq!(choose_command(&format!("{OWN_VERSION}\ncopy ffff  -\n"), "abcd"), Ok("stacklab"));
        assert_eq!(choose_command("copy abcd  -\n", "abcd"), Ok(COPY));
        assert_eq!(choose_command("stacklab 0.0.1\ncopy abcd  -\n", "abcd"), Ok(COPY));
        for (output, reason) in [
            ("", "stacklab is not there"),
            ("stacklab 0.0.1\n", "another version of stacklab is there (stacklab 0.0.1)"),
            ("copy ffff  -\n", "not this program"),
            ("copy \n", "not this program"),
            ("copy abcdef\n", "not this program"),
            ("\u{1b}]0;x\u{7}\n", "(\u{fffd}]0;x\u{fffd})"),
        ] {
            let missing = choose_command(output, "abcd").unwrap_err();
            assert!(missing.contains(reason), "{missing}");
        }
    }
}
