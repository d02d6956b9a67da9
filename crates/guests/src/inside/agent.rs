//! The start-up of a guest, from its boot until it is an agent.

use crate::hosted::batches::{Taken, UnderWay};
use crate::hosted::mux;
use crate::inside::channel::{self, LOOK};
use crate::inside::protocol::read_line;
use crate::inside::{hosted, init, outside, wifi};
use crate::{Greeting, GuestRole};
use stacklab_testbed::kernel::sysctl;
use stacklab_testbed::link::configure::{
    configure_end, configure_on_client_network, configure_router, fix_path_mtus,
};
use stacklab_testbed::link::interface::{name_by_hardware, raise};
use stacklab_testbed::link::offload::switch_off_all;
use stacklab_testbed::link::quiescence::wait_until_quiet;
use stacklab_testbed::mechanism::translate::tayga;
use stacklab_testbed::{Attempt, Fault, INTERFACE, MIDDLE, PathRole, Router, addresses, write_message};
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

/// The time within which a translator with a wrong setup has ended.
const TRANSLATES: Duration = Duration::from_millis(200);

/// The MTU of a loopback device.
const LOOPBACK_MTU: u32 = 65_536;

/// Whether this process is the init process of its system.
pub fn is_first() -> bool {
    std::process::id() == 1
}

/// Waits for a role, and takes it. For a host on a link, returns the agent's stream: the device `channel`, or a
/// virtual machine's port named `stacklab`. For a host of whole testbeds, returns when the testbeds are no longer
/// needed.
///
/// # Errors
/// There is no channel. Later errors are also sent over the channel.
pub fn take_role(channel: Option<&Path>) -> io::Result<Option<File>> {
    if is_first() {
        init::prepare()?;
    }
    let mut stream = channel::open(channel)?;
    write_message(&mut stream, &Greeting::Waiting)?;
    let found = is_first().then(outside::role).flatten();
    let requested = found.unwrap_or_else(|| read_role(&mut stream)).map_err(|error| error.to_string());
    let batches = matches!(&requested, Ok(GuestRole::Wifi(role)) if role.takes_batches());
    let built = requested.and_then(|role| match &role {
        GuestRole::Hosted(role) => hosted::build(role).map(Some).map_err(|error| error.to_string()),
        GuestRole::Wifi(role) => wifi::build(role).map(Some).map_err(|error| error.to_string()),
        GuestRole::Path { role, offloads } => {
            take(role, *offloads).map(|()| None).map_err(|fault| fault.to_string())
        }
    });
    match built {
        Ok(None) => {
            write_message(&mut stream, &Greeting::Ready)?;
            Ok(Some(stream))
        }
        // This runs until the other end is closed. What was built exists as long.
        Ok(Some((greeting, streams, _built))) => {
            write_message(&mut stream, &greeting)?;
            let served = if batches {
                let under_way = Arc::new(UnderWay::default());
                let requests = Taken::new(Arc::clone(&under_way), outside::next_requests);
                mux::serve(requests, stream, streams, Some(under_way))
            } else {
                mux::serve(stream.try_clone()?, stream, streams, None)
            };
            served.map(|()| None)
        }
        Err(reason) => {
            write_message(&mut stream, &Greeting::Failed { reason: reason.clone() })?;
            // Messages in transit would be lost when the system ends.
            std::thread::sleep(Duration::from_secs(1));
            Err(io::Error::other(reason))
        }
    }
}

/// Prepares a system without a link or a channel, whose init process this is: loopback is up.
///
/// # Errors
/// A file system cannot be mounted, or there is no loopback device.
pub fn prepare_alone() -> io::Result<()> {
    init::mount_all()?;
    raise("lo", LOOPBACK_MTU).map_err(|fault| io::Error::other(fault.to_string()))
}

/// Loads the modules that testbeds in such a system need.
pub fn prepare_testbeds() {
    init::load_modules(|name| !name.contains("virtio"));
}

/// Opens the virtual machine's port named `stacklab` in such a system. Until then its kernel has no device that the
/// machine outside drives.
///
/// # Errors
/// There is no such port.
pub fn open_channel() -> io::Result<File> {
    init::load_modules(|name| name.contains("virtio") && !name.contains("virtio_net"));
    channel::open(None)
}

/// Ends the system if this is its init process; the system cannot continue without it. Otherwise returns.
pub fn leave() {
    if is_first() {
        init::power_off();
    }
}

/// Resets the machine if this is its init process. That ends an emulated machine which is not to boot again; a kernel
/// without ACPI cannot switch it off.
pub fn reset() {
    if is_first() {
        init::reset();
    }
}

fn read_role(stream: &mut File) -> io::Result<GuestRole> {
    Ok(serde_json::from_slice(&read_line(stream, LOOK, || Ok(()))?)?)
}

/// Takes a host's role: the interface with the host's hardware address becomes the end of the link.
fn take(role: &PathRole, offloads: bool) -> Result<(), Fault> {
    sysctl::silence()?;
    for interface in role.interfaces() {
        name_by_hardware(interface.link, interface.hardware)?;
    }
    let own = match *role {
        PathRole::Host { role, mtu } => {
            raise(INTERFACE, mtu)?;
            configure_end(role)?;
            addresses(role)
        }
        PathRole::Client { site, mechanism, mtu, middle_mtu } => {
            sysctl::prepare_routing()?;
            raise(INTERFACE, mtu)?;
            configure_on_client_network(site.client(), site, mechanism)?;
            fix_path_mtus(site, mechanism, middle_mtu)?;
            site.client_addresses(mechanism)
        }
        PathRole::Router { router, near_mtu } => be_router(&router, near_mtu)?,
    };
    for interface in role.interfaces().iter().filter(|_| !offloads) {
        // Some devices turn offloads on again when they are set up (for example, in user-mode Linux).
        switch_off_all(interface.link)?;
    }
    wait_until_quiet(INTERFACE, &own)
}

/// Configures this system like the router's namespace. Returns its addresses on its client's network.
fn be_router(router: &Router, near_mtu: u32) -> Result<[IpAddr; 2], Fault> {
    sysctl::prepare_routing()?;
    // Kernels before 5.16 also have the setting, in the initial namespace, which a guest uses.
    sysctl::keep_path_mtus();
    raise(INTERFACE, near_mtu)?;
    raise(MIDDLE, router.mtu)?;
    configure_router(router)?;
    // The translator and its folder exist as long as the system. Nothing ends or removes them earlier. The
    // translator's output goes to the console.
    let folder = std::env::temp_dir();
    if let Some(mut translator) = tayga::command(router, &folder)? {
        let mut child = translator.stderr(Stdio::inherit()).spawn().attempt("start the translator")?;
        std::thread::sleep(TRANSLATES);
        if let Some(status) = child.try_wait().attempt("check the translator process")? {
            return Err(format!("it ended ({status})")).attempt("keep the translator running");
        }
    }
    Ok(router.site.gateways(router.mechanism))
}
