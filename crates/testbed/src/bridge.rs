//! A namespace's end of the link handed to a guest: bridged to a tap device, with nothing of the namespace's own on it.

use crate::address::INTERFACE;
use crate::error::{Attempt, Fault};
use crate::netlink::{interface, with_netlink};
use crate::offload::switch_off_all;
use crate::sys::create_tap;
use rtnetlink::{LinkBridge, LinkUnspec};
use std::fs;

/// The tap device's name.
pub(crate) const TAP: &str = "st1";
const BRIDGE: &str = "st2";

/// Makes the tap device in the calling thread's namespace, bridges it to the link's end and raises all three.
pub(crate) fn hand_over(mtu: u32, offloads: bool) -> Result<(), Fault> {
    create_tap(TAP).attempt(format!("create the tap device {TAP}"))?;
    if !offloads {
        switch_off_all(TAP)?;
    }
    with_netlink(async |netlink| {
        let made = netlink.link().add(LinkBridge::new(BRIDGE).build()).execute().await;
        made.attempt("create a bridge between the link and the guest")?;
        let bridge = interface(&netlink, BRIDGE).await?.header.index;
        for port in [TAP, INTERFACE] {
            let index = interface(&netlink, port).await?.header.index;
            let joined = LinkUnspec::new_with_index(index).mtu(mtu).controller(bridge).build();
            netlink.link().change(joined).execute().await.attempt(format!("put {port} into the bridge"))?;
        }
        for name in [TAP, INTERFACE, BRIDGE] {
            // Else each of them would speak for itself.
            let path = format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6");
            fs::write(&path, "1").attempt(format!("write 1 to {path}"))?;
            let index = interface(&netlink, name).await?.header.index;
            let up = LinkUnspec::new_with_index(index).up().build();
            netlink.link().change(up).execute().await.attempt(format!("raise {name}"))?;
        }
        Ok(())
    })
}
