//! A guest that hosts a Wi-Fi network.

use crate::error::{Attempt, Fault, TestbedError};
use crate::guest::hosted::{program, terminals};
use crate::guest::protocol::WifiRole;
use crate::host::program::AGENT;
use crate::host::streams::Streams;
use crate::shell::serve::serve;
use crate::topology::Node;
use crate::wifi::network::WifiNetwork;

/// The folder of the daemons' files in the guest.
const FOLDER: &str = "/tmp/wifi";

/// Builds the network. The streams are those of the agents on sender, access point and receiver, and of the commands.
pub(crate) fn build(role: &WifiRole) -> Result<(WifiNetwork, Vec<Streams>), TestbedError> {
    let mut network = WifiNetwork::build(&role.spec, &program(), &AGENT, FOLDER.as_ref())?;
    let mut streams = Vec::new();
    for host in network.hosts_mut() {
        streams.push(host.meet()?);
    }
    if role.commands > 0 {
        let hosts = network.hosts_mut().each_ref().map(|host| host.pid());
        let opened = terminals().and_then(|()| serve(role.commands, &hosts)).attempt("open command streams");
        streams.extend(opened.map_err(|fault: Fault| fault.at(Node::Sender))?);
    }
    Ok((network, streams))
}
