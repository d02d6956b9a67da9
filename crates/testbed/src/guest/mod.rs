//! The guest's own side: from a kernel that has just booted, or a system that has started this program, to a host on the
//! link.

mod channel;
mod first;
mod lab;

use crate::address::{INTERFACE, addresses};
use crate::error::{Attempt, Fault};
use crate::link::{raise, set_mtu};
use crate::mechanism::translate::tayga;
use crate::mux;
use crate::netlink::with_netlink;
use crate::offload::switch_off_all;
use crate::part::{ClientPart, Greeting, Interface, Part, RouterPart};
use crate::quiet::quiet;
use crate::routed::plan::{MIDDLE, NEAR};
use crate::routed::{lay, wire};
use crate::settle::settle;
use futures_util::TryStreamExt;
use rtnetlink::LinkUnspec;
use rtnetlink::packet_route::link::LinkAttribute;
use stacklab_model::Family;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// How long devices may take to show after the kernel has booted.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(10);
/// How soon a translator has ended that cannot do what it should.
const TRANSLATES: Duration = Duration::from_millis(200);

/// Whether this process is the first of its system, which nobody has prepared anything for.
pub fn is_first() -> bool {
    std::process::id() == 1
}

/// Waits to be told its part, and takes it. As a host on a link, gives the stream that the agent is then asked on: the
/// device `channel`, or the port named `stacklab` of a virtual machine. As the place of testbeds, returns when they are no
/// longer needed.
///
/// # Errors
/// When there is no channel. What fails afterwards is also told to whoever waits at its other end.
pub fn take_part(channel: Option<&Path>) -> io::Result<Option<File>> {
    if is_first() {
        first::prepare()?;
    }
    let mut stream = channel::open(channel)?;
    say(&mut stream, &Greeting::Waiting)?;
    let told = hear(&mut stream).map_err(|error| error.to_string());
    let taken = told.and_then(|part| match &part {
        Part::Lab(part) => {
            let mut built = lab::build(part).map_err(|error| error.to_string())?;
            Ok((Greeting::Built { carried: std::mem::take(&mut built.carried) }, Some(built)))
        }
        host => take(host).map(|()| (Greeting::Ready, None)).map_err(|fault| fault.to_string()),
    });
    match taken {
        Ok((greeting, built)) => {
            say(&mut stream, &greeting)?;
            match built {
                None => Ok(Some(stream)),
                // Until nobody is at the other end any more.
                Some(mut built) => {
                    let streams = std::mem::take(&mut built.streams);
                    mux::serve(stream.try_clone()?, stream, streams).map(|()| None)
                }
            }
        }
        Err(reason) => {
            say(&mut stream, &Greeting::Failed { reason: reason.clone() })?;
            // What is on its way to the other end would go with the system.
            std::thread::sleep(Duration::from_secs(1));
            Err(io::Error::other(reason))
        }
    }
}

/// Ends the system where this is its first process, with which it cannot go on anyway; else returns.
pub fn leave() {
    if is_first() {
        first::power_off();
    }
}

fn say(stream: &mut File, greeting: &Greeting) -> io::Result<()> {
    let mut line = serde_json::to_vec(greeting)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// Reads one line and nothing behind it.
fn hear(stream: &mut File) -> io::Result<Part> {
    let mut line = Vec::new();
    loop {
        let mut byte = [0];
        match stream.read(&mut byte)? {
            // A port of which nobody holds the other end.
            0 => std::thread::sleep(LOOK),
            _ if byte[0] == b'\n' && !line.is_empty() => return Ok(serde_json::from_slice(&line)?),
            _ if byte[0] == b'\n' => {}
            _ => line.push(byte[0]),
        }
    }
}

/// Takes a host's part: the interface with the host's hardware address becomes the link's end.
fn take(part: &Part) -> Result<(), Fault> {
    quiet()?;
    for interface in part.interfaces() {
        name_interface(&interface)?;
    }
    let (own, offloads) = match part {
        Part::Host { role, mtu, offloads } => {
            set_mtu(*mtu)?;
            raise(*role)?;
            (addresses(*role), *offloads)
        }
        Part::Client(client) => (join_row(client)?, client.offloads),
        Part::Router(router) => (route(router)?, router.offloads),
        Part::Lab(_) => return Ok(()),
    };
    for interface in part.interfaces().iter().filter(|_| !offloads) {
        // Some devices have them on again when they are raised (user-mode Linux's).
        switch_off_all(interface.link)?;
    }
    settle(&own)
}

/// Does as the namespace does that is a client behind its router. Gives its addresses.
fn join_row(client: &ClientPart) -> Result<Vec<IpAddr>, Fault> {
    let ClientPart { site, mechanism, mtu, middle_mtu, .. } = *client;
    lay::settings()?;
    wire::raise(INTERFACE, mtu)?;
    lay::join(site.client(), site, mechanism)?;
    lay::fix_path_mtus(site, mechanism, middle_mtu)?;
    Ok(site.client_addresses(mechanism))
}

/// Does as the namespace does that is a router. Gives its addresses on its client's network.
fn route(part: &RouterPart) -> Result<Vec<IpAddr>, Fault> {
    let router = &part.router;
    lay::settings()?;
    // Kernels before 5.16 have it too, in a namespace that is the only one.
    lay::keep_path_mtus();
    wire::raise(NEAR, part.near_mtu)?;
    wire::raise(MIDDLE, router.mtu)?;
    lay::route(router)?;
    // Both last as long as the system: nobody ends the one or takes the other away before. What it says is on the console.
    let folder = std::env::temp_dir();
    if let Some(mut translator) = tayga::command(router, &folder)? {
        let mut child = translator.stderr(Stdio::inherit()).spawn().attempt("start the translator")?;
        std::thread::sleep(TRANSLATES);
        if let Some(status) = child.try_wait().attempt("look after the translator")? {
            return Err(io::Error::other(format!("it ended ({status})")))
                .attempt("keep the translator running");
        }
    }
    Ok(Family::ALL.iter().map(|family| router.site.gateway(router.mechanism, *family)).collect())
}

fn name_interface(wanted: &Interface) -> Result<(), Fault> {
    let (name, wanted) = (wanted.link, LinkAttribute::Address(wanted.hardware.to_vec()));
    with_netlink(async |netlink| {
        let start = Instant::now();
        let index = loop {
            let all: Vec<_> =
                netlink.link().get().execute().try_collect().await.attempt("list the interfaces")?;
            if let Some(link) = all.into_iter().find(|link| link.attributes.contains(&wanted)) {
                break link.header.index;
            }
            if start.elapsed() > PATIENCE {
                return Err(io::Error::from(io::ErrorKind::NotFound))
                    .attempt(format!("find the interface of {name}"));
            }
            tokio::time::sleep(LOOK).await;
        };
        let down = LinkUnspec::new_with_index(index).down().build();
        netlink.link().change(down).execute().await.attempt(format!("lower the interface of {name}"))?;
        let named = LinkUnspec::new_with_index(index).name(name.to_owned()).build();
        netlink.link().change(named).execute().await.attempt(format!("name it {name}"))
    })
}
