//! A guest that hosts a Wi-Fi network.

use crate::inside::hosted::{Built, program, terminals};
use crate::inside::outside;
use crate::inside::protocol::{Greeting, MediumQuestion, WifiLook, WifiRole, WifiSeen};
use crate::shell::serve::serve;
use stacklab_testbed::error::{Attempt, Fault, TestbedError};
use stacklab_testbed::host::program::AGENT;
use stacklab_testbed::host::streams::{Streams, write_message};
use stacklab_testbed::kernel::sys::reserve_nothing;
use stacklab_testbed::topology::Node;
use stacklab_wifi::{Watch, WifiNetwork};
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
    streams.push(answers(network.medium().clone()).attempt("report on the medium").map_err(at)?);
    let (state, hosts) = (network.state.clone(), network.hosts_mut().each_ref().map(|host| host.pid()));
    let spec = role.spec.clone();
    let looks = look_at(move |look| network.look(&spec, look.seed).map_err(|error| error.to_string()));
    streams.push(looks.attempt("open a stream to the network").map_err(at)?);
    if role.commands > 0 {
        let opened = terminals().and_then(|()| serve(role.commands, &hosts)).attempt("open command streams");
        streams.extend(opened.map_err(at)?);
    }
    Ok((Greeting::Associated { state: Box::new(state) }, streams, Box::new(())))
}

/// A stream on which each line is a look at the network, until it ends.
fn look_at(mut look: impl FnMut(WifiLook) -> WifiSeen + Send + 'static) -> io::Result<Streams> {
    let (own, its) = UnixStream::pair()?;
    let mut out = its.try_clone()?;
    thread::Builder::new().name("network".to_owned()).spawn(move || {
        for line in BufReader::new(its).lines().map_while(Result::ok) {
            let seen = match serde_json::from_str(&line) {
                Ok(asked) => look(asked),
                Err(error) => Err(error.to_string()),
            };
            if write_message(&mut out, &seen).is_err() {
                break;
            }
        }
    })?;
    Ok((Box::new(own.try_clone()?), Box::new(own)))
}

/// A stream that answers each question to the medium.
fn answers(medium: Watch) -> io::Result<Streams> {
    let (own, its) = UnixStream::pair()?;
    thread::spawn(move || {
        let mut asked = BufReader::new(own.try_clone()?).lines();
        while let Some(line) = asked.next().transpose()? {
            match serde_json::from_str(&line)? {
                MediumQuestion::Report => write_message(&mut &own, &medium.report())?,
                MediumQuestion::Used(sets) => {
                    let used: Vec<_> = sets.iter().map(|windows| medium.used(windows)).collect();
                    write_message(&mut &own, &used)?;
                }
            }
        }
        io::Result::Ok(())
    });
    Ok((Box::new(its.try_clone()?), Box::new(its)))
}
