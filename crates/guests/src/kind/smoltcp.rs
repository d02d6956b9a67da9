//! smoltcp as a host: the agent carries the stack, which sends and receives the frames of the link's end.

use crate::{Boot, GuestRole, Running};
use serde_json::json;
use stacklab_model::{Family, SMOLTCP};
use stacklab_testbed::addressing::{peer, prefix_bits};
use stacklab_testbed::{
    AGENT, Attachment, Attempt, Fault, GuestSpec, Interface, PathRole, addresses, hardware_address,
};
use std::fs::File;
use std::process::{Command, Stdio};

#[derive(Debug)]
pub(crate) struct Smoltcp;

impl Boot for Smoltcp {
    fn version(&self) -> String {
        format!("{SMOLTCP} in the agent")
    }

    fn attachment(&self) -> Attachment {
        Attachment::Frames
    }

    fn boot(&self, spec: &GuestSpec<'_>, role: GuestRole) -> Result<Running, Fault> {
        let GuestRole::Path { role: path @ PathRole::Host { role, .. }, .. } = role else {
            return Err("it can only be a host at an end of a direct link").attempt("start it");
        };
        if spec.offloads {
            let why = "it takes no packets that are longer than the link's: set testbed.offloads = false";
            return Err(why).attempt("start it");
        }
        let own = path.interfaces();
        let [Interface { link, hardware, mtu }] = own[..] else {
            return Err("a host has one interface").attempt("start it");
        };
        // As `stacklab_traffic::StackConfig` reads it.
        let stack = json!({
            "interface": link,
            "hardware": hardware,
            "addresses": addresses(role).map(|own| (own, prefix_bits(Family::of(own)))),
            "neighbours": addresses(peer(role)),
            "neighbour_hardware": hardware_address(peer(role)),
            "mtu": mtu,
        });
        let console = spec.folder.join("console");
        let log = File::create(&console).attempt(format!("write {}", console.display()))?;
        let mut command = Command::new(spec.program);
        command.args(AGENT).arg(format!("--stack={stack}"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let process = spec.spawn(&mut command)?;
        Ok(Running { process, channel: None, role: None, console })
    }
}
