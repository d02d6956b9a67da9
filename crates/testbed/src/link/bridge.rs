//! Hands a namespace's end of a link over to a guest: bridges it to a tap device, and removes the namespace's
//! addresses.

use crate::error::{Attempt, Fault};
use crate::kernel::netlink::{interface, with_netlink};
use crate::kernel::sys::create_tap;
use crate::kernel::sysctl;
use crate::link::addressing::bridged_address;
use crate::link::offload::switch_off_all;
use futures_util::TryStreamExt;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::{LinkBridge, LinkUnspec};

/// The name of the tap device for a link's interface.
pub fn tap_of(link: &str) -> String {
    format!("tap-{link}")
}

/// Removes the namespace's addresses from a link's end in the calling thread's namespace: its IPv4 addresses, with
/// their routes, and the hardware address `own`, which the guest will use. Its IPv6 addresses are removed at the
/// handover.
pub(crate) fn vacate(link: &str, own: [u8; 6]) -> Result<(), Fault> {
    with_netlink(async |netlink| {
        let index = interface(&netlink, link).await?.header.index;
        let found = netlink.address().get().set_link_index_filter(index).execute();
        let found: Vec<_> = found.try_collect().await.attempt(format!("read the addresses of {link}"))?;
        for address in found.into_iter().filter(|address| address.header.family == AddressFamily::Inet) {
            let gone = netlink.address().del(address).execute().await;
            gone.attempt(format!("take an address from {link}"))?;
        }
        let other = LinkUnspec::new_with_index(index).address(bridged_address(own).to_vec()).build();
        let changed = netlink.link().change(other).execute().await;
        changed.attempt(format!("give {link} another hardware address"))
    })
}

/// Creates a bridge in the calling thread's namespace with this hardware address and port, and sets both up.
pub fn create(bridge: &str, hardware: [u8; 6], port: &str) -> Result<(), Fault> {
    // Otherwise it sends its own IPv6 packets.
    sysctl::write(&format!("ipv6/conf/{port}/disable_ipv6"), "1")?;
    with_netlink(async |netlink| {
        let made = LinkBridge::new(bridge).address(hardware.to_vec()).up().build();
        netlink.link().add(made).execute().await.attempt(format!("create the bridge {bridge}"))?;
        let controller = interface(&netlink, bridge).await?.header.index;
        let index = interface(&netlink, port).await?.header.index;
        let joined = LinkUnspec::new_with_index(index).controller(controller).up().build();
        netlink.link().change(joined).execute().await.attempt(format!("put {port} into the bridge"))
    })
}

/// Creates the tap device in the calling thread's namespace, bridges it to the link's end, and sets all three
/// interfaces up.
pub(crate) fn hand_over(link: &str, mtu: u32, offloads: bool) -> Result<(), Fault> {
    let (tap, bridge) = (&*tap_of(link), &*format!("br-{link}"));
    create_tap(tap).attempt(format!("create the tap device {tap}"))?;
    if !offloads {
        switch_off_all(tap)?;
    }
    with_netlink(async |netlink| {
        let made = netlink.link().add(LinkBridge::new(bridge).build()).execute().await;
        made.attempt("create a bridge between the link and the guest")?;
        let controller = interface(&netlink, bridge).await?.header.index;
        for port in [tap, link] {
            let index = interface(&netlink, port).await?.header.index;
            let joined = LinkUnspec::new_with_index(index).mtu(mtu).controller(controller).build();
            netlink.link().change(joined).execute().await.attempt(format!("put {port} into the bridge"))?;
        }
        for name in [tap, link, bridge] {
            // Otherwise each of them sends its own IPv6 packets.
            sysctl::write(&format!("ipv6/conf/{name}/disable_ipv6"), "1")?;
            let index = interface(&netlink, name).await?.header.index;
            let up = LinkUnspec::new_with_index(index).up().build();
            netlink.link().change(up).execute().await.attempt(format!("raise {name}"))?;
        }
        Ok(())
    })
}
