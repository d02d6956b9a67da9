//! Commands on machines: this one, and others through the user's ssh. What another machine writes is a stranger's: it
//! reaches this terminal in bounded length and without control characters. ssh itself asks on the terminal, if at all.

use crate::CampaignError;
use stacklab_model::{System, say};
use stacklab_traffic::protocol::printable_text;
use stacklab_traffic::waiting::WaitNotice;
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

/// ssh must not ask questions while a campaign starts, and must detect a machine that is gone.
const SSH: [&str; 13] = [
    "-T",
    // Nothing of this user's session is for that host: no agent of keys, no display, no forwarded ports.
    "-a",
    "-x",
    "-o",
    "ClearAllForwardings=yes",
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=10",
    "-o",
    "ServerAliveInterval=5",
    "-o",
    "ServerAliveCountMax=3",
];
/// Time limit of a command: a machine may let in and then say nothing.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit of a command that reads this program, by a slow network.
pub(super) const COPY_TIMEOUT: Duration = Duration::from_secs(600);
/// How long errors are waited for once a command has ended: another process may keep the stream open.
const ERRORS_TIMEOUT: Duration = Duration::from_secs(1);
/// How often a command that has closed its output is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// How much of a command's output is read, bytes.
const MAX_OUTPUT_LENGTH: u64 = 64 << 10;
/// How many lines of a machine's errors are shown, and the bytes of each.
const MAX_LINES: usize = 10;
const MAX_LINE_LENGTH: u64 = 300;

/// Builds a command for a machine. On another machine a shell interprets it.
pub(crate) fn on(system: &System, words: &[&str]) -> Command {
    match system {
        System::Ssh(host) => {
            let mut ssh = Command::new("ssh");
            ssh.args(SSH).arg(host).arg("--").args(words);
            ssh
        }
        _ => {
            let mut command = Command::new(words[0]);
            command.args(&words[1..]);
            command
        }
    }
}

/// The output of a command on a machine, as that machine wrote it: it is to be parsed, or to be shown by
/// [`format_machine_text`].
pub(crate) fn ask(system: &System, words: &[&str], attempted: &str) -> Result<String, CampaignError> {
    ask_with(system, words, Stdio::null(), ANSWER_TIMEOUT, attempted)
}

pub(super) fn ask_with(
    system: &System,
    words: &[&str],
    input: impl Into<Stdio>,
    timeout: Duration,
    attempted: &str,
) -> Result<String, CampaignError> {
    let failed =
        |reason: String| CampaignError::Unreachable(format!("could not {attempted} on {system}: {reason}"));
    let mut command = on(system, words);
    command.stdin(input);
    let notice = WaitNotice::within(&format!("{system} to answer (to {attempted})"), timeout);
    let (status, output, errors) = run(command, timeout).map_err(|error| failed(reason(system, &error)))?;
    drop(notice);
    if status.success() {
        return Ok(output);
    }
    let said = format_machine_text(&errors);
    // ssh's own exit code for errors.
    let advice = match (system, status.code()) {
        (System::Ssh(host), Some(255)) => format!("; check that `ssh {host} true` works without a prompt"),
        _ => String::new(),
    };
    Err(failed(format!("{}{advice}", if said.is_empty() { status.to_string() } else { said })))
}

/// Why a command on a machine has no result, and what to do.
fn reason(system: &System, error: &io::Error) -> String {
    match system {
        System::Ssh(host) if error.kind() == io::ErrorKind::TimedOut => {
            format!(
                "{error}; check that `ssh {host} true` ends, and what the machine's shell does at its start"
            )
        }
        _ => error.to_string(),
    }
}

/// Runs a command, which is killed when its time is up. Returns its exit code, and the start of its output and of its
/// errors.
fn run(mut command: Command, timeout: Duration) -> io::Result<(ExitStatus, String, String)> {
    let deadline = Instant::now() + timeout;
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let output = start_read(child.stdout.take());
    let errors = start_read(child.stderr.take());
    let output = output.recv_timeout(timeout);
    let status = wait_until(&mut child, deadline)?;
    let (Ok(output), Some(status)) = (output, status) else {
        child.kill()?;
        child.wait()?;
        let silent = format!("it did not answer within {} s", timeout.as_secs());
        return Err(io::Error::new(io::ErrorKind::TimedOut, silent));
    };
    Ok((status, output, errors.recv_timeout(ERRORS_TIMEOUT).unwrap_or_default()))
}

/// Reads the start of a stream on a thread: a stream that another process keeps open has no end.
fn start_read(stream: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(start_of(stream)));
    receiver
}

fn wait_until(child: &mut Child, deadline: Instant) -> io::Result<Option<ExitStatus>> {
    loop {
        match child.try_wait()? {
            None if Instant::now() < deadline => thread::sleep(POLL_INTERVAL),
            status => return Ok(status),
        }
    }
}

/// The start of a stream, which is then closed: whoever writes more has an error.
fn start_of(stream: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        // What came before an error is shown.
        let _ = stream.take(MAX_OUTPUT_LENGTH).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A machine's text for this terminal: its last lines, each marked as the machine's if there are several.
pub(crate) fn format_machine_text(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let line = printable_text(line.trim()).chars().take(MAX_LINE_LENGTH as usize).collect::<String>();
        if !line.is_empty() {
            lines.push(line);
        }
    }
    match &lines[lines.len().saturating_sub(MAX_LINES)..] {
        [one] => one.clone(),
        several => several.iter().map(|line| format!("\n  | {line}")).collect(),
    }
}

/// Shows the errors of a running command, each line with its machine's name; after some lines nothing more.
pub(crate) fn relay(system: &System, errors: impl Read + Send + 'static) {
    let name = system.to_string();
    thread::spawn(move || {
        let mut errors = BufReader::new(errors);
        let mut line = Vec::new();
        let mut printed = 0;
        while errors.by_ref().take(MAX_LINE_LENGTH).read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0)
        {
            let text = printable_text(String::from_utf8_lossy(&line).trim());
            line.clear();
            // What is not shown is read all the same: the machine need not wait.
            if !text.is_empty() && printed <= MAX_LINES {
                printed += 1;
                say!("{name}: {}", if printed > MAX_LINES { "(more, not shown)" } else { &text });
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_output_is_bounded_and_printable() {
        assert_eq!(format_machine_text("\n one\u{1b}]0;x\u{7}\r\n"), "one\u{fffd}]0;x\u{fffd}");
        assert_eq!(format_machine_text("a\n\nb\n"), "\n  | a\n  | b");
        let long = format_machine_text(&"x".repeat(1000));
        assert_eq!(long.len() as u64, MAX_LINE_LENGTH);
        let many: String = (0..1000).map(|number| format!("{number}\n")).collect();
        assert!(
            format_machine_text(&many).ends_with("\n  | 999")
                && format_machine_text(&many).lines().count() == MAX_LINES + 1
        );
        assert_eq!(format_machine_text(""), "");
    }

    #[test]
    fn nothing_of_this_session_is_forwarded() {
        let ssh = on(&System::Ssh("lab".to_owned()), &["true"]);
        let words: Vec<&str> = ssh.get_args().map(|word| word.to_str().unwrap()).collect();
        let text = words.join(" ");
        for option in ["-a", "-x", "-o ClearAllForwardings=yes", "-o BatchMode=yes"] {
            assert!(text.contains(&format!("{option} ")), "{option}: {text}");
        }
        assert!(text.ends_with(" lab -- true"), "{text}");
    }

    #[test]
    fn a_command_that_writes_without_end_is_ended() {
        for script in ["yes", "yes >&2"] {
            let mut command = Command::new("sh");
            command.args(["-c", script]).stdin(Stdio::null());
            let (status, output, errors) = run(command, ANSWER_TIMEOUT).unwrap();
            assert!(!status.success());
            assert_eq!((output.len() + errors.len()) as u64, MAX_OUTPUT_LENGTH);
        }
    }

    #[test]
    fn a_command_that_says_nothing_is_ended() {
        // The output ends with the command, never, or without it.
        for script in ["exec sleep 60", "sleep 60 & wait", "exec sleep 60 >&- 2>&-", "sleep 60 &"] {
            let mut command = Command::new("sh");
            command.args(["-c", script]).stdin(Stdio::null());
            let began = Instant::now();
            let error = run(command, Duration::from_millis(300)).unwrap_err();
            assert!(began.elapsed() < Duration::from_secs(20), "{script}");
            let said = reason(&System::Ssh("lab".to_owned()), &error);
            assert!(said.contains("did not answer within 0 s; check that `ssh lab true` ends"), "{said}");
        }
    }

    #[test]
    fn stderr_held_by_another_process_delays_no_answer() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 3 >/dev/null & echo here"]).stdin(Stdio::null());
        let (status, output, _) = run(command, ANSWER_TIMEOUT).unwrap();
        assert!(status.success() && output == "here\n");
    }
}
