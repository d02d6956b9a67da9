//! NAT64, SIIT and 464XLAT: translate addresses and headers of one family to the other, with the router's translator:
//! Jool, in its kernel, or the program tayga. The record names the translator.

mod jool;
pub mod tayga;

use crate::link::addressing::{TRANSLATED, XLAT};
use crate::link::interface::Route;
use crate::mechanism::router::translates_at;
use crate::{Fault, MIDDLE, Router, Site};
use stacklab_model::{Family, Translation, Translator};
use std::fmt;
use std::net::IpAddr;

pub use jool::{FOLDER as JOOL_FOLDER, here as jool_here};

/// The translator on a router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Translates {
    /// The kind of translator.
    pub by: Translator,
    /// Its version, if known.
    pub version: Option<String>,
}

impl Translates {
    /// The translator for routers whose kernel has this version of Jool, or none: the requested one. Without a request,
    /// Jool if the kernel has it and all connections start at the sender (`forward_only`), else tayga.
    pub fn choose(jool: Option<String>, asked: Option<Translator>, forward_only: bool) -> Self {
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

/// Adds routes to the translators, and sets up the translator on this router if this router translates.
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
        // Without connection state, traffic can also start at the other end.
        assert_eq!(chosen(there, None, false), "tayga");
        assert_eq!(chosen(None, None, true), "tayga");
        assert_eq!(chosen(there, Some(Tayga), true), "tayga");
        assert_eq!(chosen(there, Some(Jool), false), "Jool 4.1.13");
        assert_eq!(chosen(None, Some(Jool), true), "Jool");
    }
}
