//! A guest that hosts a Wi-Fi network.

use crate::error::{Attempt, Fault, TestbedError};
use crate::guest::hosted::{program, terminals};
use crate::guest::outside;
use crate::guest::protocol::WifiRole;
use crate::host::program::AGENT;
use crate::host::streams::{Streams, write_message};
use crate::shell::serve::serve;
use crate::topology::Node;
use crate::wifi::carrier::Watch;
use crate::wifi::network::WifiNetwork;
use std::io::{self, BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::thread;

/// The folder of the daemons' files in the guest.
const FOLDER: &str = "/tmp/wifi";
/// The file with what was on air, in the folder outside.
pub(crate) const CAPTURE: &str = "capture.pcapng";

/// Builds the network. The streams are those of the agents on sender, access point and receiver, the medium's reports,
/// and those of the commands.
pub(crate) fn build(role: &WifiRole) -> Result<(WifiNetwork, Vec<Streams>), TestbedError> {
    let capture = role.spec.is_captured().then(|| outside::file(CAPTURE));
    let mut network =
        WifiNetwork::build(&role.spec, &program(), &AGENT, FOLDER.as_ref(), capture.as_deref())?;
    let at = |fault: Fault| fault.at(Node::AccessPoint);
    let mut streams = Vec::new();
    for host in network.hosts_mut() {
        streams.push(host.meet()?);
    }
    streams.push(reports(network.medium().clone()).attempt("report on the medium").map_err(at)?);
    if role.commands > 0 {
        let hosts = network.hosts_mut().each_ref().map(|host| host.pid());
        let opened = terminals().and_then(|()| serve(role.commands, &hosts)).attempt("open command streams");
        streams.extend(opened.map_err(at)?);
    }
    Ok((network, streams))
}

/// A stream that answers each line with the medium's report.
fn reports(medium: Watch) -> io::Result<Streams> {
    let (own, its) = UnixStream::pair()?;
    thread::spawn(move || {
        let mut asked = BufReader::new(own.try_clone()?).lines();
        while asked.next().transpose()?.is_some() {
            write_message(&mut &own, &medium.report())?;
        }
        io::Result::Ok(())
    });
    Ok((Box::new(its.try_clone()?), Box::new(its)))
}
