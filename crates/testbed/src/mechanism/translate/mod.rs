//! NAT64, SIIT and 464XLAT: addresses and headers of one family translated to the other's, by what a router has for it: Jool, in
//! its kernel, or the program tayga. Which it is stands in the record.

mod jool;
pub(crate) mod tayga;

use crate::error::Fault;
use crate::image::installed::Image;
use crate::link::addressing::{MIDDLE, Site, TRANSLATED, XLAT};
use crate::link::interface::Route;
use crate::mechanism::router::{Router, translates_at};
use stacklab_model::{Family, System, Translation, Translator};
use std::fmt;
use std::net::IpAddr;
use std::sync::OnceLock;

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
        // Every row asks: this kernel is tried once.
        static HERE: OnceLock<Option<String>> = OnceLock::new();
        let jool = || match system {
            System::Namespace => HERE.get_or_init(|| jool_here().ok()).clone(),
            System::Uml | System::OwnUml(_) | System::Linux(_) => Image::find(system).ok()?.jool,
            System::Gvisor | System::Disk(_) | System::Here | System::Ssh(_) => None,
        };
        Self::choose(jool(), asked, forward_only)
    }

    /// The choice, where the kernel has this version of Jool or none.
    fn choose(jool: Option<String>, asked: Option<Translator>, forward_only: bool) -> Self {
        let by = asked.unwrap_or(match jool {
            Some(_) if forward_only => Translator::Jool,
            _ => Translator::Tayga,
        });
        Translates { by, version: jool.filter(|_| by == Translator::Jool) }
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

/// Routes into the translators, and starts the one on this router where it translates.
pub(super) fn build(router: &Router) -> Result<(), Fault> {
    if translates_at(router.mechanism, router.site) {
        match router.translator {
            Translator::Tayga => tayga::build(router)?,
            Translator::Jool => jool::build(router)?,
        }
    }
    let other = router.site.other();
    let to: (IpAddr, u8) = match (router.mechanism.translation(), router.site) {
        (Some(Translation::Far), Site::Far) | (Some(Translation::Near), Site::Near) => {
            other.network(router.mechanism, Family::Ipv6)
        }
        (Some(Translation::Both), Site::Far) => (XLAT.0.into(), XLAT.1),
        _ => (TRANSLATED.0.into(), TRANSLATED.1),
    };
    Route { to, device: MIDDLE, via: Some(other.outer(Family::Ipv6)), mtu: None }.add()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jool_is_taken_where_it_is_there_and_lets_everything_through() {
        use Translator::{Jool, Tayga};
        let chosen = |version: Option<&str>, asked, forward_only| {
            Translates::choose(version.map(str::to_owned), asked, forward_only).to_string()
        };
        let there = Some("4.1.13");
        assert_eq!(chosen(there, None, true), "Jool 4.1.13");
        // What begins at the other end comes through where nothing keeps state.
        assert_eq!(chosen(there, None, false), "tayga");
        assert_eq!(chosen(None, None, true), "tayga");
        assert_eq!(chosen(there, Some(Tayga), true), "tayga");
        assert_eq!(chosen(there, Some(Jool), false), "Jool 4.1.13");
        assert_eq!(chosen(None, Some(Jool), true), "Jool");
    }
}
