//! NAT64, SIIT and 464XLAT: addresses and headers of one family translated to the other's, by what a router has for it: Jool, in
//! its kernel, or the program tayga. Which it is stands in the record.

mod jool;
pub(crate) mod tayga;

use super::Router;
use crate::error::Fault;
use crate::image::Image;
use crate::routed::plan::{MIDDLE, Site, TRANSLATED, XLAT};
use crate::routed::wire::Route;
use stacklab_model::{Family, Mechanism, System, Translator};
use std::fmt;
use std::net::IpAddr;

pub(crate) use jool::here as jool_here;

/// What translates on a router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Translates {
    /// Which it is.
    pub by: Translator,
    /// Its version, where it is known.
    pub version: Option<String>,
}

impl Translates {
    /// What translates on routers of a system: what is asked for, or Jool where the system's kernel has it and it lets through
    /// what begins at the other end.
    pub(crate) fn on(system: &System, asked: Option<Translator>, forward_only: bool) -> Self {
        let jool = || match system {
            System::Namespace => jool_here().ok(),
            System::Uml | System::OwnUml(_) | System::Linux(_) => Image::find(system).ok()?.jool,
            System::Gvisor | System::Disk(_) | System::Here | System::Ssh(_) => None,
        };
        let version = if asked == Some(Translator::Tayga) { None } else { jool() };
        let by = asked.unwrap_or(match version {
            Some(_) if forward_only => Translator::Jool,
            _ => Translator::Tayga,
        });
        Translates { by, version: version.filter(|_| by == Translator::Jool) }
    }
}

impl fmt::Display for Translates {
    /// `Jool 4.1.13`, `tayga`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.by, &self.version) {
            (Translator::Tayga, _) => f.write_str("tayga"),
            (Translator::Jool, Some(version)) => write!(f, "Jool {version}"),
            (Translator::Jool, None) => f.write_str("Jool"),
        }
    }
}

/// Whether the mechanism translates on this router.
pub(crate) fn translates_at(mechanism: Mechanism, site: Site) -> bool {
    match mechanism {
        Mechanism::Nat64 => site == Site::Far,
        Mechanism::Siit => site == Site::Near,
        Mechanism::Xlat464 => true,
        _ => false,
    }
}

pub(super) fn lay(router: &Router) -> Result<(), Fault> {
    if translates_at(router.mechanism, router.site) {
        match router.translator {
            Translator::Tayga => tayga::lay(router)?,
            Translator::Jool => jool::lay(router)?,
        }
    }
    let other = router.site.other();
    let to: (IpAddr, u8) = match (router.mechanism, router.site) {
        (Mechanism::Nat64, Site::Far) | (Mechanism::Siit, Site::Near) => {
            other.network(router.mechanism, Family::Ipv6)
        }
        (Mechanism::Xlat464, Site::Far) => (XLAT.0.into(), XLAT.1),
        _ => (TRANSLATED.0.into(), TRANSLATED.1),
    };
    Route { to, device: MIDDLE, via: Some(other.outer(Family::Ipv6)), mtu: None }.add()
}
