//! Hands a namespace's end of a link over to a guest: bridges it to a tap device, and removes the namespace's
//! addresses.

use crate::kernel::netlink::{add_device, change, index, with_netlink};
use crate::kernel::sys::create_lasting;
use crate::kernel::sysctl;
use crate::link::addressing::bridged_address;
use crate::link::offload::switch_off_all;
use crate::{Attempt, Fault};
use futures_util::TryStreamExt;
use rtnetlink::LinkBridge;
use rtnetlink::packet_route::AddressFamily;

/// The name of the tap device for a link's interface.
pub fn tap_of(link: &str) -> String {
    format!("tap-{link}")
}

/// Removes the namespace's addresses from a link's end in the calling thread's namespace: its IPv4 addresses, with
/// their routes, and the hardware address `own`, which the guest will use. Its IPv6 addresses are removed at the
/// handover.
pub(crate) fn vacate(link: &str, own: [u8; 6]) -> Result<(), Fault> {
    let index = index(link)?;
    with_netlink(async |netlink| {
        let found = netlink.address().get().set_link_index_filter(index).execute();
        let found: Vec<_> = found.try_collect().await.attempt(format!("read the addresses of {link}"))?;
        for address in found.into_iter().filter(|address| address.header.family == AddressFamily::Inet) {
            let gone = netlink.address().del(address).execute().await;
            gone.attempt(format!("take an address from {link}"))?;
        }
        Ok(())
    })?;
    change(link, "change the hardware address of", |link| link.address(bridged_address(own).to_vec()))
}

/// Creates a bridge in the calling thread's namespace with this hardware address and port, and sets both up.
pub fn create(bridge: &str, hardware: [u8; 6], port: &str) -> Result<(), Fault> {
    silence(port)?;
    let made = LinkBridge::new(bridge).address(hardware.to_vec()).up().build();
    add_device(made, &format!("the bridge {bridge}"))?;
    let controller = index(bridge)?;
    change(port, "put into the bridge", |link| link.controller(controller).up())
}

/// Creates the tap device, bridges it to the link's end in the calling thread's namespace, and sets all three up.
pub(crate) fn hand_over(link: &str, mtu: u32, offloads: bool) -> Result<(), Fault> {
    let (tap, bridge) = (&*tap_of(link), &*format!("br-{link}"));
    create_lasting(tap, libc::IFF_TAP).attempt(format!("create the tap device {tap}"))?;
    if !offloads {
        switch_off_all(tap)?;
    }
    add_device(LinkBridge::new(bridge).build(), &format!("the bridge {bridge}"))?;
    let controller = index(bridge)?;
    for port in [tap, link] {
        change(port, "put into the bridge", |link| link.mtu(mtu).controller(controller))?;
    }
    for name in [tap, link, bridge] {
        silence(name)?;
        change(name, "raise", |link| link.up())?;
    }
    Ok(())
}

/// Keeps an interface from sending IPv6 packets by itself.
fn silence(interface: &str) -> Result<(), Fault> {
    sysctl::write(&format!("ipv6/conf/{interface}/disable_ipv6"), "1")
}
