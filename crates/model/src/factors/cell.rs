//! A point of the study's matrix: one level of every factor. And what applies where a study names no level.

use crate::{
    CellSettings, Direction, Factor, Family, Generator, Mechanism, Rules, Services, Shared, SizeOf, Systems,
    Translator, Transport, payload_of_frame,
};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "CellKeys")]
pub struct Cell {
    pub transport: Transport,
    pub size_of: SizeOf,
    /// Bytes per message, or per frame if `size_of` says so.
    pub size: u32,
    pub family: Family,
    /// A label without effect; empty if the study has no replicas.
    pub replica: String,
    pub settings: Shared<CellSettings>,
}

/// A cell as it is in JSON, where one of a study's own program has none of what is not known of its messages.
#[derive(Deserialize)]
struct CellKeys {
    transport: Option<Transport>,
    size_of: Option<SizeOf>,
    size: Option<u32>,
    family: Family,
    #[serde(default)]
    replica: String,
    #[serde(default)]
    settings: Shared<CellSettings>,
}

impl TryFrom<CellKeys> for Cell {
    type Error = String;

    fn try_from(keys: CellKeys) -> Result<Self, String> {
        let CellKeys { mut transport, mut size_of, mut size, family, replica, settings } = keys;
        if settings.program.is_some() {
            // What stands in such a cell.
            transport = transport.or(Some(Transport::Tcp));
            size_of = size_of.or(Some(SizeOf::Payload));
            size = size.or(Some(0));
        }
        Ok(Cell {
            transport: transport.ok_or("missing field `transport`")?,
            size_of: size_of.ok_or("missing field `size_of`")?,
            size: size.ok_or("missing field `size`")?,
            family,
            replica,
            settings,
        })
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Cell { transport, size_of, size, family, replica, settings } = self;
        let mut map = serializer.serialize_map(None)?;
        if settings.program.is_none() {
            map.serialize_entry("transport", transport)?;
            map.serialize_entry("size_of", size_of)?;
            map.serialize_entry("size", size)?;
        }
        map.serialize_entry("family", family)?;
        if !replica.is_empty() {
            map.serialize_entry("replica", replica)?;
        }
        if !crate::is_default(settings) {
            map.serialize_entry("settings", settings)?;
        }
        map.end()
    }
}

impl Cell {
    pub fn new(family: Family, transport: Transport, size_of: SizeOf, size: u32) -> Self {
        Cell { transport, size_of, size, family, replica: String::new(), settings: Shared::default() }
    }

    /// Bytes of application payload per message, including the probe's own header. 0 if a frame is too small for its
    /// headers; a study's check refuses such a cell.
    pub fn payload_bytes(&self) -> u32 {
        match self.size_of {
            SizeOf::Payload | SizeOf::Write => self.size,
            SizeOf::Frame => payload_of_frame(self.family, self.transport, self.size).unwrap_or(0),
        }
    }

    /// Payload bytes of the packets on a path that leaves at most this many, and whether the kernel joins writes to
    /// full segments, as it does for TCP.
    pub(crate) fn wire_unit(&self, most: u32) -> (u32, bool) {
        if self.size_of != SizeOf::Write || self.transport != Transport::Tcp {
            return (self.payload_bytes(), false);
        }
        // TCP_MAXSEG includes the options after the first 20 bytes of the TCP header.
        let options = self.transport.header_bytes() - 20;
        let mss = self.settings.tuning.mss.map(|mss| mss.saturating_sub(options).max(1));
        (mss.map_or(most, |mss| mss.min(most)), true)
    }

    /// The cell's level of a factor, in the spelling of reports and study files; empty if it has none.
    pub fn level(&self, factor: Factor) -> String {
        match factor {
            _ if !self.has(factor) => String::new(),
            Factor::Family => self.family.to_string(),
            Factor::Transport => self.transport.to_string(),
            Factor::SizeOf => self.size_of.to_string(),
            Factor::Size => self.size.to_string(),
            Factor::Replica => self.replica.clone(),
            setting => self.settings.get(setting).unwrap_or_default(),
        }
    }

    /// Sets the cell's level of a factor, given in the spelling of study files.
    pub fn set(&mut self, factor: Factor, level: &str) -> Result<(), String> {
        let unknown = || factor.unknown(level);
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

    /// Whether programs that are not stacklab's make its traffic.
    pub fn has_other_programs(&self) -> bool {
        Generator::of(self).is_other() || self.settings.program.is_some()
    }

    /// The transport of its messages; `None` if it is a program's own.
    pub fn transport_of_messages(&self) -> Option<Transport> {
        Some(self.transport).filter(|_| self.has(Factor::Transport))
    }

    /// Whether the factor says something of it: what a program sends, and how, is its own.
    fn has(&self, factor: Factor) -> bool {
        let is_of_messages = matches!(factor, Factor::Transport | Factor::SizeOf | Factor::Size);
        !is_of_messages || self.settings.program.is_none()
    }

    /// Whether two cells are equal except for the factor. Equal cells count too.
    pub fn same_but(&self, other: &Cell, factor: Factor) -> bool {
        Factor::ALL.iter().all(|f| *f == factor || self.level(*f) == other.level(*f))
    }

    /// The cell's levels without one factor, for headings: `tcp 128 B payload`.
    pub fn context(&self, without: Factor) -> String {
        let parts = Factor::ALL.iter().filter(|f| **f != without && self.has(**f)).filter_map(|f| match f {
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

    /// `IPv6 TCP 128 B 6in4`. Sizes are of payloads unless it says so.
    pub fn label(&self) -> String {
        self.label_without(None)
    }

    pub fn label_without(&self, without: Option<Factor>) -> String {
        let size_of = (self.size_of != SizeOf::Payload).then_some(Factor::SizeOf);
        let factors = [Factor::Family, Factor::Transport, Factor::Size].into_iter().chain(size_of);
        let levels = factors.chain([Factor::Replica]).map(|factor| (factor, self.level(factor)));
        let all = levels.chain(self.settings.levels()).filter(|(factor, _)| Some(*factor) != without);
        let labels = all.map(|(factor, level)| factor.level_label(&level));
        labels.filter(|level| !level.is_empty()).collect::<Vec<_>>().join(" ")
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.family)?;
        if self.has(Factor::Transport) {
            write!(f, " {} {} B {}", self.transport, self.size, self.size_of)?;
        }
        if !self.replica.is_empty() {
            write!(f, " {}", self.replica)?;
        }
        self.settings.levels().try_for_each(|(factor, level)| write!(f, " {factor}={level}"))
    }
}

impl Services {
    pub fn of(cell: &Cell) -> Self {
        cell.settings.services.as_deref().cloned().unwrap_or_default()
    }
}

impl Systems {
    pub fn of(cell: &Cell) -> Self {
        cell.settings.os.as_deref().cloned().unwrap_or(Systems::NAMESPACES)
    }

    /// The systems of the two routers, the sender's first.
    pub fn of_routers(cell: &Cell) -> Self {
        cell.settings.router_os.as_deref().cloned().unwrap_or(Systems::NAMESPACES)
    }
}

impl Generator {
    pub fn of(cell: &Cell) -> Self {
        cell.settings.generator.unwrap_or(Generator::Stacklab)
    }
}

impl Mechanism {
    pub fn of(cell: &Cell) -> Self {
        cell.settings.mechanism.unwrap_or(Mechanism::Native)
    }
}

impl Translator {
    /// `None`: the routers' own translator.
    pub fn of(cell: &Cell) -> Option<Self> {
        cell.settings.translator
    }
}

impl Rules {
    pub fn of(cell: &Cell) -> Self {
        Rules {
            count: cell.settings.rules.unwrap_or_default(),
            form: cell.settings.rule_form.unwrap_or_default(),
        }
    }
}

impl Direction {
    pub fn of(cell: &Cell) -> Self {
        cell.settings.direction.unwrap_or(Direction::Forward)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Metric;
    use std::collections::BTreeSet;

    #[test]
    fn a_frame_holds_its_headers_and_a_message_does_not() {
        for size_of in [SizeOf::Payload, SizeOf::Write] {
            assert_eq!(count_payload(Family::Ipv6, size_of, 512), 512);
        }
        assert_eq!(count_payload(Family::Ipv4, SizeOf::Frame, 512), 512 - 46);
        assert_eq!(count_payload(Family::Ipv6, SizeOf::Frame, 512), 512 - 66);
        assert_eq!(count_payload(Family::Ipv6, SizeOf::Frame, 64), 0);
    }

    fn count_payload(family: Family, size_of: SizeOf, size: u32) -> u32 {
        Cell::new(family, Transport::Udp, size_of, size).payload_bytes()
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

    #[test]
    fn no_label_is_a_key_and_none_is_used_twice() {
        let labels: BTreeSet<String> = Metric::ALL.iter().map(|metric| metric.label()).collect();
        assert_eq!(labels.len(), Metric::ALL.len());
        assert!(labels.iter().all(|label| !label.contains('_')), "{labels:?}");
        let factors: BTreeSet<String> = Factor::ALL.iter().map(|factor| factor.label()).collect();
        assert_eq!(factors.len(), Factor::ALL.len());
        assert!(factors.iter().all(|label| !label.contains('_')), "{factors:?}");
    }

    #[test]
    fn levels_say_what_they_are() {
        assert_eq!(Factor::Family.level_label("ipv6"), "IPv6");
        assert_eq!(Factor::Size.level_label("128"), "128 B");
        assert_eq!(Factor::Mechanism.level_label("6in4"), "6in4");
        assert_eq!(Factor::Mtu.level_label("1280"), "MTU 1280");
        assert_eq!(Factor::ReceiveBuffer.level_label("65536"), "receive buffer 65536");
        assert_eq!(Factor::SizeOf.level_label("write"), "size of a write");
        let mut cell = Cell::new(Family::Ipv4, Transport::Udp, SizeOf::Payload, 128);
        assert_eq!(cell.label(), "IPv4 UDP 128 B");
        cell.set(Factor::Os, "gvisor").unwrap();
        assert_eq!(cell.label_without(Some(Factor::Family)), "UDP 128 B gvisor");
        cell.size_of = SizeOf::Frame;
        assert_eq!(cell.label(), "IPv4 UDP 128 B size of a frame gvisor");
    }

    #[test]
    fn a_program_has_neither_transport_nor_size() {
        let mut cell = Cell::new(Family::Ipv6, Transport::Tcp, SizeOf::Payload, 0);
        cell.set(Factor::Program, "nginx").unwrap();
        assert_eq!(
            (cell.label(), cell.to_string()),
            ("IPv6 nginx".to_owned(), "ipv6 program=nginx".to_owned())
        );
        assert_eq!(cell.context(Factor::Family), "program=nginx");
        assert_eq!(cell.level(Factor::Size), "");
        let json = serde_json::to_string(&cell).unwrap();
        assert_eq!(json, r#"{"family":"ipv6","settings":{"program":"nginx"}}"#);
        assert_eq!(serde_json::from_str::<Cell>(&json).unwrap(), cell);
        let other = Cell::new(Family::Ipv6, Transport::Udp, SizeOf::Frame, 64);
        let json = serde_json::to_string(&other).unwrap();
        assert_eq!(json, r#"{"transport":"udp","size_of":"frame","size":64,"family":"ipv6"}"#);
        assert_eq!(serde_json::from_str::<Cell>(&json).unwrap(), other);
        for key in [r#""transport":"udp","#, r#""size_of":"frame","#, r#""size":64,"#] {
            let error = serde_json::from_str::<Cell>(&json.replace(key, "")).unwrap_err().to_string();
            assert!(error.contains("missing field"), "{key}: {error}");
        }
    }
}
