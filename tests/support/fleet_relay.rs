//! A relay in place of an agent of this machine: it repeats orders, and loses what is said after them.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// The relay. It ends with the test.
pub(crate) struct FleetRelay(Arc<Relayed>);

struct Relayed {
    /// The agent's socket.
    agent: PathBuf,
    /// Each request's name, and the beginning of its answer.
    answers: Mutex<Vec<(String, String)>>,
    /// Orders to measure, by attempt, until the first order to forget is lost, and then until they are repeated.
    orders: [Mutex<BTreeMap<String, String>>; 2],
}

impl FleetRelay {
    /// Takes the place of an agent's socket in the folder of agents.
    pub(crate) fn start(folder: &Path, agent: &str) -> Self {
        let place = folder.join(format!("{agent}.sock"));
        let relayed = Arc::new(Relayed {
            agent: folder.join(format!("{agent}.behind")),
            answers: Mutex::default(),
            orders: Default::default(),
        });
        fs::rename(&place, &relayed.agent).unwrap();
        let listener = UnixListener::bind(&place).unwrap();
        let relay = FleetRelay(Arc::clone(&relayed));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let relayed = Arc::clone(&relayed);
                thread::spawn(move || relayed.pass(stream));
            }
        });
        relay
    }

    /// Every request so far and the beginning of its answer; "lost" where nobody heard that.
    pub(crate) fn answers(&self) -> Vec<(String, String)> {
        self.0.answers.lock().unwrap().clone()
    }
}

impl Relayed {
    /// One conversation: an order to measure reaches the agent twice, and once more when its result is forgotten. The
    /// first order to forget a result is lost.
    fn pass(self: Arc<Self>, coordinator: UnixStream) {
        let mut line = String::new();
        BufReader::new(&coordinator).read_line(&mut line).unwrap();
        let [new, repeated] = &self.orders;
        if name(&line) == "forget"
            && let Some(order) = take(new, &line)
        {
            repeated.lock().unwrap().insert(attempt(&line).to_owned(), order);
            return self.answers.lock().unwrap().push(("forget".to_owned(), "lost".to_owned()));
        }
        let agent = self.ask(&line);
        if name(&line) == "measure" {
            new.lock().unwrap().insert(attempt(&line).to_owned(), line.clone());
            // When the agent has the first one.
            thread::sleep(Duration::from_millis(30));
            self.answer(&line, self.ask(&line), None);
        }
        self.answer(&line, agent, Some(&coordinator));
        if name(&line) == "forget"
            && let Some(order) = take(repeated, &line)
        {
            self.answer(&order, self.ask(&order), None);
        }
    }

    fn ask(&self, line: &str) -> UnixStream {
        let mut stream = UnixStream::connect(&self.agent).unwrap();
        stream.write_all(line.as_bytes()).unwrap();
        stream
    }

    /// Waits for an answer, and passes it on.
    fn answer(&self, request: &str, mut agent: UnixStream, to: Option<&UnixStream>) {
        let mut answer = Vec::new();
        agent.read_to_end(&mut answer).unwrap();
        let start = String::from_utf8_lossy(&answer[..answer.len().min(200)]).into_owned();
        self.answers.lock().unwrap().push((name(request).to_owned(), start));
        if let Some(mut to) = to {
            let _ = to.write_all(&answer).and_then(|()| to.shutdown(Shutdown::Both));
        }
    }
}

/// Takes out the order to measure whose attempt is in a request.
fn take(orders: &Mutex<BTreeMap<String, String>>, line: &str) -> Option<String> {
    orders.lock().unwrap().remove(attempt(line))
}

/// The attempt in a request.
fn attempt(line: &str) -> &str {
    let from = line.find("{\"campaign").unwrap_or_default();
    line[from..].split_inclusive('}').next().unwrap_or_default()
}

/// The name of a request.
fn name(line: &str) -> &str {
    line.split('"').nth(1).unwrap_or_default()
}
