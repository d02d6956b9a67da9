//! The agent: does on its host what it is asked, one request after another, until its input ends.

use crate::message::{Answer, Numbered, Request, VERSIONS};
use crate::receiver::Receiver;
use crate::{facts, sender};
use stacklab_model::HostFacts;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, BufRead, Write};
use std::sync::mpsc;
use std::thread;

/// Answers kept for requests that arrive twice.
const KEPT: usize = 16;

/// Serves a coordinator until `input` ends. The whole process ends with it, in the middle of a trial too: nobody is
/// left to report to.
///
/// # Errors
/// When an answer cannot be written.
pub fn serve(input: impl BufRead + Send + 'static, mut output: impl Write) -> io::Result<()> {
    let (lines, requests) = mpsc::channel();
    thread::spawn(move || {
        for line in input.lines().map_while(Result::ok) {
            if lines.send(line).is_err() {
                break;
            }
        }
        std::process::exit(0);
    });
    let mut agent = Agent::default();
    for line in requests {
        let answer = match serde_json::from_str(&line) {
            Ok(request) => agent.answer(request),
            Err(error) => {
                // The id may still be legible, so that the coordinator learns which request was not understood.
                let id = serde_json::from_str::<serde_json::Value>(&line).ok().and_then(|v| v["id"].as_u64());
                let reason = format!("this agent does not understand the request: {error}");
                Numbered { id: id.unwrap_or(0), body: Answer::Failed { reason } }
            }
        };
        serde_json::to_writer(&mut output, &answer)?;
        output.write_all(b"\n")?;
        output.flush()?;
    }
    Ok(())
}

/// What this host is and can do, as its agent would say it.
pub fn facts() -> HostFacts {
    facts::gather()
}

#[derive(Default)]
struct Agent {
    receivers: BTreeMap<u64, Receiver>,
    given: VecDeque<Numbered<Answer>>,
}

impl Agent {
    fn answer(&mut self, request: Numbered<Request>) -> Numbered<Answer> {
        if let Some(given) = self.given.iter().find(|given| given.id == request.id) {
            return given.clone();
        }
        let body = self.perform(request.id, request.body).unwrap_or_else(|reason| Answer::Failed { reason });
        let answer = Numbered { id: request.id, body };
        self.given.push_back(answer.clone());
        if self.given.len() > KEPT {
            self.given.pop_front();
        }
        answer
    }

    fn perform(&mut self, id: u64, request: Request) -> Result<Answer, String> {
        match request {
            Request::Hello { oldest, newest } => {
                let version = newest.min(VERSIONS.1);
                if version < oldest.max(VERSIONS.0) {
                    return Err(format!(
                        "this agent speaks versions {} to {}, the coordinator {oldest} to {newest}: install the same stacklab on both",
                        VERSIONS.0, VERSIONS.1
                    ));
                }
                Ok(Answer::Hello { version, program: env!("CARGO_PKG_VERSION").to_owned() })
            }
            Request::Facts => Ok(Answer::Facts(Box::new(facts::gather()))),
            Request::Listen { spec, address } => {
                let receiver = Receiver::listen(*spec, address).map_err(|error| error.to_string())?;
                let address = receiver.address;
                self.receivers.insert(id, receiver);
                Ok(Answer::Listening { address })
            }
            Request::Send { spec, from, to } => sender::run(&spec, from, to)
                .map(|side| Answer::Done(Box::new(side)))
                .map_err(|error| error.to_string()),
            Request::Collect { listen } => {
                let receiver =
                    self.receivers.remove(&listen).ok_or("no such receiver: it was never asked to listen")?;
                receiver.collect().map(|side| Answer::Done(Box::new(side))).map_err(|error| error.to_string())
            }
        }
    }
}
