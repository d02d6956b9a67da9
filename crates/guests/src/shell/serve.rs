//! The guest's side of `stacklab lab enter`: runs commands on the guest's hosts.

use crate::shell::{Ask, Bytes, ClientFrame, CommandRequest, GuestFrame, Window};
use nix::sys::signal::Signal;
use stacklab_model::printable_text;
use stacklab_testbed::kernel::sys::{
    kill_group, lead_terminal, open_terminal, resize_terminal, signal_group,
};
use stacklab_testbed::{Streams, write_message};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// The time that a command has to end by itself after its client is gone.
const GRACE: Duration = Duration::from_millis(500);

const SHOWN: usize = 80;

type Out = Arc<Mutex<UnixStream>>;

/// Command streams. Each runs one command at a time on one of the hosts, which are process IDs.
pub(crate) fn serve(count: usize, hosts: &[u32]) -> io::Result<Vec<Streams>> {
    let mut streams: Vec<Streams> = Vec::with_capacity(count);
    for _ in 0..count {
        let (own, its) = UnixStream::pair()?;
        let hosts = hosts.to_vec();
        thread::spawn(move || {
            let _ = answer(its, &hosts);
        });
        streams.push((Box::new(own.try_clone()?), Box::new(own)));
    }
    Ok(streams)
}

fn answer(stream: UnixStream, hosts: &[u32]) -> io::Result<()> {
    let out = Arc::new(Mutex::new(stream.try_clone()?));
    let mut running: Option<RunningCommand> = None;
    let mut heard = Vec::new();
    for line in BufReader::new(stream).lines() {
        let line = line?;
        match serde_json::from_str(&line) {
            Ok(ClientFrame::Part(Bytes(bytes))) => heard.extend(bytes),
            other => {
                heard.clear();
                match other {
                    Ok(_) => running.take().map_or(Ok(()), RunningCommand::hang_up)?,
                    Err(_) => refuse(&out, line.as_bytes(), running.take())?,
                }
                continue;
            }
        }
        while let Some(end) = heard.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = heard.drain(..=end).collect();
            let Ok(ask) = serde_json::from_slice(&line) else {
                refuse(&out, &line, running.take())?;
                continue;
            };
            match (ask, &mut running) {
                (Ask::Run(order), _) => match RunningCommand::start(&order, hosts, &out) {
                    Ok(started) => running = Some(started),
                    Err(error) => {
                        tell(&out, &GuestFrame::Failed(format!("{}: {error}", order.command.join(" "))));
                    }
                },
                (_, None) => {}
                (Ask::Input(Bytes(bytes)), Some(running)) => {
                    drop(running.input.as_ref().map(|input| input.send(Some(bytes))))
                }
                (Ask::InputEnds, Some(running)) => running.input = None,
                (Ask::Resized(Window { rows, columns }), Some(running)) => {
                    // A terminal with the wrong size still works.
                    drop(running.terminal.as_ref().map(|terminal| resize_terminal(terminal, rows, columns)));
                }
            }
        }
        // Behind input that the command has not read yet: a client waits for a slow reader.
        let behind = running.as_ref().and_then(|running| running.input.as_ref());
        if behind.is_none_or(|input| input.send(None).is_err()) {
            tell(&out, &GuestFrame::Taken);
        }
    }
    Ok(())
}

/// Answers a line that is not a message of this version with its beginning, and ends the command.
fn refuse(out: &Out, line: &[u8], running: Option<RunningCommand>) -> io::Result<()> {
    let line = String::from_utf8_lossy(line);
    let beginning: String = printable_text(line.trim_end()).chars().take(SHOWN).collect();
    let text = format!("this guest does not understand `{beginning}`");
    match running {
        None => tell(out, &GuestFrame::Failed(text)),
        // The last message is that of the command's end.
        Some(running) => {
            tell(out, &GuestFrame::Errors(Bytes(format!("stacklab: {text}\n").into_bytes())));
            running.hang_up()?;
        }
    }
    Ok(())
}

fn tell(out: &Out, what: &GuestFrame) {
    let _ = write_message(&mut *out.lock().unwrap_or_else(PoisonError::into_inner), what);
}

struct RunningCommand {
    pid: u32,
    ended: Arc<AtomicBool>,
    /// Its input, and `None` for an acknowledgement once it has what came before. A thread writes it: the command may
    /// not read for a long time.
    input: Option<Sender<Option<Vec<u8>>>>,
    terminal: Option<File>,
}

impl RunningCommand {
    fn start(order: &CommandRequest, hosts: &[u32], out: &Out) -> io::Result<Self> {
        let host = hosts.get(order.host).ok_or_else(|| io::Error::other("there is no such host"))?;
        let mut command = Command::new("/proc/self/exe");
        command.args(["lab", "inside", &host.to_string()]).arg(&order.folder).arg("--").args(&order.command);
        command.env_clear().envs(order.environment.iter().map(|(name, value)| (name, value)));
        let terminal = order.terminal.map(|window| open_terminal(window.rows, window.columns)).transpose()?;
        let (mut child, terminal) = match terminal {
            Some((own, its)) => {
                command.stdin(its.try_clone()?).stdout(its.try_clone()?).stderr(its);
                lead_terminal(&mut command);
                (command.spawn()?, Some(own))
            }
            None => {
                command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
                (command.spawn()?, None)
            }
        };
        drop(command);
        let mut readers = Vec::new();
        let (input, given) = mpsc::channel::<Option<Vec<u8>>>();
        let mut sink: Box<dyn Write + Send> = match &terminal {
            Some(terminal) => {
                readers.push(forward(terminal.try_clone()?, out, GuestFrame::Output));
                Box::new(terminal.try_clone()?)
            }
            None => {
                let pipes = child.stdin.take().zip(child.stdout.take()).zip(child.stderr.take());
                let ((sink, output), errors) = pipes.expect("all three are pipes");
                readers.push(forward(output, out, GuestFrame::Output));
                readers.push(forward(errors, out, GuestFrame::Errors));
                Box::new(sink)
            }
        };
        let taker = Arc::clone(out);
        thread::spawn(move || {
            let mut open = true;
            for bytes in given {
                match bytes {
                    // A command that reads no more has ended or ignores its input.
                    Some(bytes) => open = open && sink.write_all(&bytes).is_ok(),
                    None => tell(&taker, &GuestFrame::Taken),
                }
            }
        });
        let ended = Arc::new(AtomicBool::new(false));
        let pid = child.id();
        let over = Arc::clone(&ended);
        let out = Arc::clone(out);
        thread::spawn(move || {
            let code = wait(&mut child, &over);
            for reader in readers {
                let _ = reader.join();
            }
            tell(&out, &code.map_or_else(|error| GuestFrame::Failed(error.to_string()), GuestFrame::Ended));
        });
        Ok(RunningCommand { pid, ended, input: Some(input), terminal })
    }

    /// Ends the command with a hangup, as when its terminal closes. Kills it if it does not end.
    fn hang_up(self) -> io::Result<()> {
        if !self.ended.load(Ordering::Acquire) {
            signal_group(self.pid, Signal::SIGHUP)?;
            thread::sleep(GRACE);
        }
        if !self.ended.load(Ordering::Acquire) {
            kill_group(self.pid)?;
        }
        Ok(())
    }
}

fn wait(child: &mut Child, over: &AtomicBool) -> io::Result<i32> {
    let status = child.wait();
    over.store(true, Ordering::Release);
    let status = status?;
    Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
}

/// Forwards all output until its end. A terminal reports an error when its last process has ended.
fn forward(
    mut from: impl Read + Send + 'static,
    out: &Out,
    as_what: fn(Bytes) -> GuestFrame,
) -> thread::JoinHandle<()> {
    let out = Arc::clone(out);
    thread::spawn(move || {
        let mut room = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut room) {
            tell(&out, &as_what(Bytes(room[..count].to_vec())));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command stream of no host, and what it tells.
    fn stream() -> (Box<dyn Write + Send>, impl FnMut() -> GuestFrame) {
        let [(from, to)] = <[Streams; 1]>::try_from(serve(1, &[0; 4]).unwrap()).ok().unwrap();
        let mut frame = BufReader::new(from).lines();
        (to, move || serde_json::from_str(&frame.next().unwrap().unwrap()).unwrap())
    }

    #[test]
    fn a_host_that_is_not_there_is_said() {
        let (mut to, mut hear) = stream();
        let order = CommandRequest {
            host: 4,
            command: vec!["true".into()],
            folder: "/".into(),
            environment: Vec::new(),
            terminal: None,
        };
        let mut line = Vec::new();
        write_message(&mut line, &Ask::Run(order)).unwrap();
        // The request comes in two parts. The first part alone is not a request.
        let (first, second) = line.split_at(9);
        write_message(&mut to, &ClientFrame::Part(Bytes(first.to_vec()))).unwrap();
        assert_eq!(hear(), GuestFrame::Taken);
        write_message(&mut to, &ClientFrame::Part(Bytes(second.to_vec()))).unwrap();
        assert_eq!(hear(), GuestFrame::Failed("true: there is no such host".to_owned()));
    }
    #[test]
    fn what_the_guest_does_not_understand_is_refused() {
        let (mut to, mut hear) = stream();
        to.write_all(b"{\"later\":\x1b[1m}\n").unwrap();
        let refusal = "this guest does not understand `{\"later\":\u{fffd}[1m}`";
        assert_eq!(hear(), GuestFrame::Failed(refusal.to_owned()));
        for (text, shown) in
            [("{\"pause\":1}".to_owned(), "{\"pause\":1}".to_owned()), ("x".repeat(200), "x".repeat(80))]
        {
            write_message(&mut to, &ClientFrame::Part(Bytes((text + "\n").into_bytes()))).unwrap();
            let refusal = format!("this guest does not understand `{shown}`");
            assert_eq!(hear(), GuestFrame::Failed(refusal));
            assert_eq!(hear(), GuestFrame::Taken, "the next request is heard");
        }
    }

    #[test]
    fn a_command_whose_client_is_not_understood_is_ended() {
        let (own, its) = UnixStream::pair().unwrap();
        let mut child = Command::new("sleep").arg("600").process_group(0).spawn().unwrap();
        let running = RunningCommand { pid: child.id(), ended: Arc::default(), input: None, terminal: None };
        let out = Arc::new(Mutex::new(its.try_clone().unwrap()));
        refuse(&out, b"?\n", Some(running)).unwrap();
        assert!(!child.wait().unwrap().success());
        let frame = BufReader::new(own).lines().next().unwrap().unwrap();
        let text = "stacklab: this guest does not understand `?`\n";
        let frame: GuestFrame = serde_json::from_str(&frame).unwrap();
        assert_eq!(frame, GuestFrame::Errors(Bytes(text.into())));
        assert!(!frame.is_last(), "the command's end comes last");
    }
}
