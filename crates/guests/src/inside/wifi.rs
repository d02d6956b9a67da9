//! A guest that hosts a Wi-Fi network.

use crate::inside::hosted::{Built, program, terminals};
use crate::inside::outside;
use crate::shell::serve::serve;
use crate::{Greeting, MediumQuestion, WifiLook, WifiRole};
use serde::de::DeserializeOwned;
use stacklab_testbed::kernel::sys::reserve_nothing;
use stacklab_testbed::{AGENT, Attempt, Fault, Host, Node, Streams, TestbedError, write_message};
use stacklab_wifi::WifiNetwork;
use std::io::{self, BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::thread;

/// The folder of the daemons' files in the guest.
const FOLDER: &str = "/tmp/wifi";
/// The file with what was on air, in the folder outside.
pub(crate) const CAPTURE: &str = "capture.pcapng";

/// Builds the network. The streams are those of the agents on sender, access point and receiver, the medium's answers,
/// those of looks at the network, and those of the commands. The network ends with the stream of looks.
pub(super) fn build(role: &WifiRole) -> Result<Built, TestbedError> {
    let at = |fault: Fault| fault.at(Node::AccessPoint);
    // A kernel without this setting has none reserved, or has late exchanges, which are reported.
    reserve_nothing().attempt("have the medium always run first").map_err(at)?;
    let capture = role.spec.is_captured().then(|| outside::file(CAPTURE));
    let mut network =
        WifiNetwork::build(&role.spec, &program(), &AGENT, FOLDER.as_ref(), capture.as_deref())?;
    let mut streams = Vec::new();
    for host in network.hosts_mut() {
        streams.push(host.meet()?);
    }
    let medium = network.medium().clone();
    let answers = answering("medium", move |question, out| match question {
        MediumQuestion::Report => write_message(out, &medium.report()),
        MediumQuestion::Used(sets) => {
            write_message(out, &sets.iter().map(|windows| medium.used(windows)).collect::<Vec<_>>())
        }
    });
    streams.push(answers.attempt("report on the medium").map_err(at)?);
    let (state, hosts) =
        (network.state.clone(), network.hosts_mut().iter().map(Host::pid).collect::<Vec<_>>());
    let spec = role.spec.clone();
    let looks = answering("network", move |look: WifiLook, out| {
        write_message(out, &network.look(&spec, look.seed).map_err(|error| error.to_string()))
    });
    streams.push(looks.attempt("open a stream to the network").map_err(at)?);
    if role.commands > 0 {
        let opened = terminals().and_then(|()| serve(role.commands, &hosts)).attempt("open command streams");
        streams.extend(opened.map_err(at)?);
    }
    Ok((Greeting::Associated { state: Box::new(state) }, streams, Box::new(())))
}

/// A stream on which each line is a question that is answered, until it ends or a line is not a question.
fn answering<Q: DeserializeOwned>(
    name: &str,
    mut answer: impl FnMut(Q, &mut UnixStream) -> io::Result<()> + Send + 'static,
) -> io::Result<Streams> {
    let (own, mut its) = UnixStream::pair()?;
    let asked = BufReader::new(its.try_clone()?).lines();
    thread::Builder::new().name(name.to_owned()).spawn(move || {
        for line in asked.map_while(Result::ok) {
            let Ok(question) = serde_json::from_str(&line) else { break };
            if answer(question, &mut its).is_err() {
                break;
            }
        }
    })?;
    Ok((Box::new(own.try_clone()?), Box::new(own)))
}
