//! A point of the study's matrix: one level of every factor.

use crate::factors::factor::Factor;
use crate::factors::family::{Family, SizeOf, Transport};
use crate::factors::settings::{CellSettings, UnknownLevel};
use crate::network::headers::payload_of_frame;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One level of every factor.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Cell {
    /// Transport protocol.
    pub transport: Transport,
    /// The meaning of `size`.
    pub size_of: SizeOf,
    /// Bytes per message, or per frame if `size_of` says so.
    pub size: u32,
    /// Address family.
    pub family: Family,
    /// A label without effect; empty if the study has no replicas.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub replica: String,
    /// Levels of the factors that have no field above.
    #[serde(default, skip_serializing_if = "CellSettings::is_empty")]
    pub settings: CellSettings,
}

impl Cell {
    /// A cell without a replica's label and without settings.
    pub fn new(family: Family, transport: Transport, size_of: SizeOf, size: u32) -> Self {
        Cell { transport, size_of, size, family, replica: String::new(), settings: CellSettings::default() }
    }

    /// Bytes of application payload per message, including the probe's own header. 0 if a frame is too small for its
    /// headers; a study's check refuses such a cell.
    pub fn payload_bytes(&self) -> u32 {
        match self.size_of {
            SizeOf::Payload | SizeOf::Write => self.size,
            SizeOf::Frame => payload_of_frame(self.family, self.transport, self.size).unwrap_or(0),
        }
    }

    /// The cell's level of a factor, in the spelling of reports and study files.
    pub fn level(&self, factor: Factor) -> String {
        match factor {
            Factor::Family => self.family.to_string(),
            Factor::Transport => self.transport.to_string(),
            Factor::SizeOf => self.size_of.to_string(),
            Factor::Size => self.size.to_string(),
            Factor::Replica => self.replica.clone(),
            setting => self.settings.get(setting).unwrap_or_default(),
        }
    }

    /// Sets the cell's level of a factor, given in the spelling of study files.
    ///
    /// # Errors
    /// If the text is not a level of the factor.
    pub fn set(&mut self, factor: Factor, level: &str) -> Result<(), UnknownLevel> {
        let unknown = || UnknownLevel { factor, level: level.to_owned() };
        match factor {
            Factor::Family => self.family = level.parse().map_err(|_| unknown())?,
            Factor::Transport => self.transport = level.parse().map_err(|_| unknown())?,
            Factor::SizeOf => self.size_of = level.parse().map_err(|_| unknown())?,
            Factor::Size => self.size = level.parse().map_err(|_| unknown())?,
            Factor::Replica => level.clone_into(&mut self.replica),
            setting => self.settings.set(setting, level)?,
        }
        Ok(())
    }

    /// Whether two cells are equal except for the factor. Equal cells count too.
    pub fn same_but(&self, other: &Cell, factor: Factor) -> bool {
        Factor::ALL.iter().all(|f| *f == factor || self.level(*f) == other.level(*f))
    }

    /// The cell's levels without one factor, for headings: `tcp 128 B payload`.
    pub fn context(&self, without: Factor) -> String {
        let parts = Factor::ALL.iter().filter(|f| **f != without).filter_map(|f| match f {
            // The size says it: `128 B payload`.
            Factor::SizeOf if without != Factor::Size => None,
            Factor::Size if without != Factor::SizeOf => Some(format!("{} B {}", self.size, self.size_of)),
            Factor::Size => Some(format!("{} B", self.size)),
            Factor::Replica if self.replica.is_empty() => None,
            f if f.is_setting() => self.settings.get(*f).map(|level| format!("{f}={level}")),
            _ => Some(self.level(*f)),
        });
        parts.collect::<Vec<_>>().join(" ")
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} B {}", self.family, self.transport, self.size, self.size_of)?;
        if !self.replica.is_empty() {
            write!(f, " {}", self.replica)?;
        }
        self.settings.levels().try_for_each(|(factor, level)| write!(f, " {factor}={level}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_holds_its_headers_and_a_message_does_not() {
        let payload =
            |family, size_of, size| Cell::new(family, Transport::Udp, size_of, size).payload_bytes();
        for size_of in [SizeOf::Payload, SizeOf::Write] {
            assert_eq!(payload(Family::Ipv6, size_of, 512), 512);
        }
        assert_eq!(payload(Family::Ipv4, SizeOf::Frame, 512), 512 - 46);
        assert_eq!(payload(Family::Ipv6, SizeOf::Frame, 512), 512 - 66);
        assert_eq!(payload(Family::Ipv6, SizeOf::Frame, 64), 0);
    }

    #[test]
    fn every_factor_is_set_by_the_text_of_its_level() {
        let mut cell = Cell::new(Family::Ipv4, Transport::Udp, SizeOf::Payload, 64);
        for (factor, level) in [
            (Factor::Family, "ipv6"),
            (Factor::Transport, "tcp"),
            (Factor::SizeOf, "write"),
            (Factor::Size, "128"),
            (Factor::Replica, "a"),
            (Factor::Os, "namespace->gvisor"),
            (Factor::Mtu, "9000"),
        ] {
            assert_eq!(cell.set(factor, level), Ok(()));
            assert_eq!(cell.level(factor), level);
        }
        assert_eq!(cell.to_string(), "ipv6 tcp 128 B write a os=namespace->gvisor mtu=9000");
        assert_eq!(cell.level(Factor::Flows), "");
        assert!(cell.set(Factor::Size, "-1").is_err() && cell.set(Factor::Family, "ipx").is_err());
        assert_eq!(
            serde_json::to_string(&cell).unwrap(),
            concat!(
                r#"{"transport":"tcp","size_of":"write","size":128,"family":"ipv6","replica":"a","#,
                r#""settings":{"os":"namespace->gvisor","mtu":"9000"}}"#
            )
        );
    }
}
