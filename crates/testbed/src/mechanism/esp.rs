//! ESP: policies say what is encrypted, and states have the keys, by the program `ip`. In tunnel mode there is no
//! device: packets leave by the middle link. In transport mode the routers' own packets of GRE are encrypted.

use crate::kernel::netlink::Route;
use crate::mechanism::command::run_with_input;
use crate::{Attempt, CustomerId, Fault, MIDDLE, Router, Site, TestbedError, find};
use stacklab_model::{Family, Mechanism, Setup, Tunnel};
use std::net::IpAddr;
use std::path::PathBuf;

/// AES-GCM with a tag of 128 bits, and a key of this testbed's: 16 bytes, and 4 that begin each initialisation vector.
const CIPHER: &str = "rfc4106(gcm(aes))";
const KEY: &str = "0x000102030405060708090a0b0c0d0e0f10111213";
const TAG_BITS: u32 = 128;
/// The numbers of the keys from the near router, and to it, in each mode.
const TUNNEL_SPIS: [u32; 2] = [0x1001, 0x1002];
const TRANSPORT_SPIS: [u32; 2] = [0x2001, 0x2002];
const REQUEST: u32 = 1;
/// The protocol number of GRE: the program knows its name only by a file that guests lack.
const GRE: u8 = 47;

/// The path of the program `ip`. The error says how to get it.
pub fn ip_program() -> Result<PathBuf, TestbedError> {
    find("ip", "sudo apt-get install --no-install-recommends iproute2")
}

pub(crate) fn build(router: &Router, tunnel: &Tunnel) -> Result<(), Fault> {
    configure(&(write_states(tunnel) + &write_policies(router.site, router.mechanism, tunnel.outer())))?;
    for family in router.mechanism.definition().carries {
        // The policy gives packets their way; the route only leads to it.
        let to = router.other_network(*family);
        Route { to, device: MIDDLE, via: None, mtu: None }.add()?;
    }
    Ok(())
}

/// Encrypts what the router at a site sends by GRE to the other, and takes no other GRE from there.
pub(crate) fn encrypt_gre(site: Site, tunnel: &Tunnel) -> Result<(), Fault> {
    configure(&(write_states(tunnel) + &write_gre_policies(site, tunnel.outer())))
}

/// Whether this kernel has these states and policies and this machine the program, in a temporary namespace.
pub(crate) fn try_states(tunnel: &Tunnel) -> Result<(), Fault> {
    configure(&write_states(tunnel))
}

fn configure(commands: &str) -> Result<(), Fault> {
    let program = ip_program().attempt("find the program for ESP")?;
    run_with_input(&program, &["-batch", "-"], commands).attempt(
        "add keys and policies of ESP (a guest's image has their modules if it is new: stacklab image get)",
    )
}

/// The states of both directions: each router encrypts by one, and decrypts by the other.
fn write_states(tunnel: &Tunnel) -> String {
    let [near, far] = [Site::Near, Site::Far].map(|site| site.outer(CustomerId::FIRST, tunnel.outer()));
    let is_transport = tunnel.device.setup == Setup::GreInEsp;
    let spis = if is_transport { TRANSPORT_SPIS } else { TUNNEL_SPIS };
    // A tunnel takes either family.
    let [mode, flag] = if is_transport { ["transport", ""] } else { ["tunnel", " flag af-unspec"] };
    let mut states = String::new();
    for (from, to, spi) in [(near, far, spis[0]), (far, near, spis[1])] {
        states += &format!(
            "xfrm state add src {from} dst {to} proto esp spi {spi:#x} reqid {REQUEST} mode {mode} \
             aead {CIPHER} {KEY} {TAG_BITS}{flag}\n"
        );
    }
    states
}

fn write_gre_policies(site: Site, outer: Family) -> String {
    let [own, other] = [site, site.other()].map(|site| site.outer(CustomerId::FIRST, outer));
    let mut policies = String::new();
    for (direction, from, to) in [("out", own, other), ("in", other, own)] {
        policies += &format!(
            "xfrm policy add src {from} dst {to} proto {GRE} dir {direction} tmpl src {from} dst {to} proto esp reqid \
             {REQUEST} mode transport\n"
        );
    }
    policies
}

/// What leaves for the other client is encrypted, and what comes from it must have been.
fn write_policies(site: Site, mechanism: Mechanism, outer: Family) -> String {
    let mut policies = String::new();
    let other = site.other();
    for family in mechanism.definition().carries {
        for (direction, from, to) in [("out", site, other), ("in", other, site), ("fwd", other, site)] {
            policies += &format!(
                "xfrm policy add src {} dst {} dir {direction} tmpl src {} dst {} proto esp reqid {REQUEST} mode tunnel\n",
                write_network(from.network(CustomerId::FIRST, mechanism, *family)),
                write_network(to.network(CustomerId::FIRST, mechanism, *family)),
                from.outer(CustomerId::FIRST, outer),
                to.outer(CustomerId::FIRST, outer),
            );
        }
    }
    policies
}

fn write_network((address, prefix): (IpAddr, u8)) -> String {
    format!("{address}/{prefix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_encrypt_what_leaves_for_the_other_client() {
        let said = write_policies(Site::Near, Mechanism::Esp6, Family::Ipv6);
        assert_eq!(said.lines().count(), 6, "{said}");
        let first = "xfrm policy add src 198.18.1.0/24 dst 198.18.2.0/24 dir out tmpl src 2001:2:0:ffff::1 dst 2001:2:0:ffff::2 proto esp";
        assert!(said.starts_with(first), "{said}");
        assert!(said.contains("src 2001:2:0:2::/64 dst 2001:2:0:1::/64 dir fwd"), "{said}");
    }

    #[test]
    fn both_directions_have_their_own_number() {
        let said = write_states(Mechanism::Esp4.tunnel().unwrap());
        for state in [
            "src 198.18.0.1 dst 198.18.0.2 proto esp spi 0x1001",
            "src 198.18.0.2 dst 198.18.0.1 proto esp spi 0x1002",
        ] {
            assert!(said.contains(state), "{said}");
        }
    }

    #[test]
    fn gre_is_encrypted_between_the_routers_alone() {
        let states = write_states(Mechanism::Gre4Esp.tunnel().unwrap());
        assert!(states.contains("mode transport") && !states.contains("af-unspec"), "{states}");
        let said = write_gre_policies(Site::Far, Family::Ipv4);
        let first = "xfrm policy add src 198.18.0.2 dst 198.18.0.1 proto 47 dir out tmpl src 198.18.0.2";
        assert!(said.starts_with(first), "{said}");
        assert_eq!(said.lines().count(), 2, "{said}");
    }
}
