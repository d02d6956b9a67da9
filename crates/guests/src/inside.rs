//! The guest's side: the steps from a freshly booted kernel, or from a system that has started this program, to a
//! host on the link.

use crate::hosted::batches::{Taken, UnderWay};
use crate::hosted::mux;
use crate::inside::protocol::read_line;
use crate::{Greeting, GuestRole};
use nix::errno::Errno;
use nix::kmod::init_module;
use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};
use stacklab_model::say;
use stacklab_testbed::kernel::memory::MemoryWatch;
use stacklab_testbed::kernel::netlink::{name_by_hardware, raise, wait_until_quiet};
use stacklab_testbed::kernel::sys::make_raw;
use stacklab_testbed::kernel::sysctl;
use stacklab_testbed::kernel::tc::htb::ask_for_bursts;
use stacklab_testbed::link::{
    configure_client, configure_end, configure_router, fix_path_mtus, switch_off_all,
};
use stacklab_testbed::mechanism::translate::tayga_command;
use stacklab_testbed::{Attempt, Fault, INTERFACE, MIDDLE, PathRole, Router, addresses, write_message};
use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) mod protocol;
pub(crate) mod testbeds;

const TRANSLATES: Duration = Duration::from_millis(200);

const LOOPBACK_MTU: u32 = 65_536;

/// Whether this process is the init process of its system.
pub fn is_first() -> bool {
    std::process::id() == 1
}

/// Waits for a role, and takes it. For a host on a link, returns the agent's stream: the device `channel`, or a
/// virtual machine's port named `stacklab`. For a host of whole testbeds, returns when they are no longer needed.
/// Later errors than a missing channel are also sent over the channel.
pub fn take_role(channel: Option<&Path>) -> io::Result<Option<File>> {
    if is_first() {
        mount_all()?;
        load_modules(|_| true);
        // Without htb, links use another shaper.
        let _ = ask_for_bursts();
    }
    let mut stream = open(channel)?;
    write_message(&mut stream, &Greeting::Waiting)?;
    let found = is_first().then(testbeds::role).flatten();
    let requested = found.unwrap_or_else(|| read_role(&mut stream)).map_err(|error| error.to_string());
    let batches = matches!(&requested, Ok(GuestRole::Wifi(role)) if role.takes_batches());
    let built = requested.and_then(|role| match &role {
        GuestRole::Hosted(role) => {
            testbeds::build_routed_testbeds(role).map(Some).map_err(|error| error.to_string())
        }
        GuestRole::Wifi(role) => testbeds::build_wifi(role).map(Some).map_err(|error| error.to_string()),
        GuestRole::Path { role, offloads } => {
            take(role, *offloads).map_err(|fault| fault.to_string()).map(|()| None)
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
                let requests = Taken::new(Arc::clone(&under_way), testbeds::next_requests);
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

fn read_role(stream: &mut File) -> io::Result<GuestRole> {
    Ok(serde_json::from_slice(&read_line(stream, POLL_INTERVAL, || Ok(()))?)?)
}

/// Prepares a system without a link or a channel, whose init process this is: loopback is up.
pub fn prepare_alone() -> io::Result<()> {
    mount_all()?;
    raise("lo", LOOPBACK_MTU).map_err(|fault| io::Error::other(fault.to_string()))
}

/// Loads the modules that testbeds in such a system need.
pub fn prepare_testbeds() {
    load_modules(|name| !name.contains("virtio"));
}

/// Fails if this kernel will never have that port: it has no driver for it as a module, and none built in.
pub fn check_channel() -> io::Result<()> {
    let modules = fs::read_dir(MODULES).into_iter().flatten().flatten();
    match modules.into_iter().any(|file| file.file_name().to_string_lossy().contains("virtio")) {
        true => Ok(()),
        false => wait_for(None).map(drop),
    }
}

/// Opens the virtual machine's port named `stacklab` in such a system. Until then its kernel has no device that the
/// machine outside drives.
pub fn open_channel() -> io::Result<File> {
    load_modules(|name| name.contains("virtio") && !name.contains("virtio_net"));
    open(None)
}

/// Ends the system if this is its init process; the system cannot continue without it. Otherwise returns.
pub fn leave() {
    if is_first() {
        // Without the permission it returns, and the process ends.
        let _ = reboot(RebootMode::RB_POWER_OFF);
    }
}

/// Resets the machine if this is its init process. That ends an emulated machine which is not to boot again; a kernel
/// without ACPI cannot switch it off.
pub fn reset() {
    if is_first() {
        let _ = reboot(RebootMode::RB_AUTOBOOT);
    }
}

/// Takes a host's role: the interface with its hardware address becomes the end of the link.
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
            configure_client(site, mechanism)?;
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
    configure_router(router, &mut MemoryWatch::default())?;
    // The translator and its folder exist as long as the system. Its output goes to the console.
    let folder = std::env::temp_dir();
    if let Some(mut translator) = tayga_command(router, &folder)? {
        let mut child = translator.stderr(Stdio::inherit()).spawn().attempt("start the translator")?;
        std::thread::sleep(TRANSLATES);
        if let Some(status) = child.try_wait().attempt("check the translator process")? {
            return Err(format!("it ended ({status})")).attempt("keep the translator running");
        }
    }
    Ok(router.site.gateways(router.mechanism))
}

/// Timeout for devices to appear after the kernel has booted.
const TIMEOUT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

const NAME: &str = "stacklab";
const PORTS: &str = "/sys/class/virtio-ports";

fn open(device: Option<&Path>) -> io::Result<File> {
    let path = wait_for(device)?;
    let file = OpenOptions::new().read(true).write(true).open(&path);
    let file = file.map_err(|error| {
        io::Error::new(error.kind(), format!("could not open {}: {error}", path.display()))
    })?;
    // A serial line would echo its input and convert line ends.
    if file.is_terminal() {
        make_raw(&file)?;
    }
    Ok(file)
}

/// The file of a device, or of the port, once the kernel has found it.
fn wait_for(device: Option<&Path>) -> io::Result<PathBuf> {
    let start = Instant::now();
    loop {
        let found = device.map(Path::to_owned).or_else(port).filter(|path| path.exists());
        if let Some(path) = found {
            return Ok(path);
        }
        if start.elapsed() > TIMEOUT {
            let what =
                device.map_or(format!("port named {NAME} in {PORTS}"), |path| path.display().to_string());
            return Err(io::Error::new(io::ErrorKind::NotFound, format!("there is no {what}")));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

fn port() -> Option<PathBuf> {
    for entry in fs::read_dir(PORTS).ok()?.flatten() {
        if fs::read_to_string(entry.path().join("name")).is_ok_and(|name| name.trim() == NAME) {
            return Some(Path::new("/dev").join(entry.file_name()));
        }
    }
    None
}

const MODULES: &str = "/modules";

fn mount_all() -> io::Result<()> {
    for (kind, place) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")] {
        fs::create_dir_all(place)?;
        match mount(Some(kind), place, Some(kind), MsFlags::empty(), None::<&str>) {
            // Some kernels mount /dev themselves.
            Ok(()) | Err(Errno::EBUSY) => {}
            Err(error) => {
                let kind = io::Error::from(error).kind();
                return Err(io::Error::new(kind, format!("could not mount {place}: {error}")));
            }
        }
    }
    Ok(())
}

/// Loads the modules with such names. A module that fails to load is reported on the console; whatever needs it then
/// reports its own error.
fn load_modules(is_wanted: impl Fn(&str) -> bool) {
    let entries = fs::read_dir(MODULES).into_iter().flatten().flatten();
    let wanted = entries.filter(|file| is_wanted(&file.file_name().to_string_lossy()));
    let mut files: Vec<_> = wanted.map(|file| file.path()).collect();
    files.sort();
    for file in files {
        let loaded = fs::read(&file).and_then(|module| Ok(init_module(&module, c"")?));
        if let Err(error) = loaded {
            say!("stacklab: could not load {}: {error}", file.display());
        }
    }
}
