//! The words that people read for factors and levels. Files and flags have their keys.

use crate::factors::cell::Cell;
use crate::factors::factor::Factor;
use crate::factors::family::SizeOf;

impl Factor {
    /// What tables call it: `receive buffer`.
    pub fn label(self) -> String {
        match self {
            Factor::Os | Factor::Mtu | Factor::Mss | Factor::Dscp => self.name().to_uppercase(),
            Factor::WifiMcs => "MCS".to_owned(),
            Factor::WifiSnr => "SNR".to_owned(),
            Factor::WifiDtimPeriod => "DTIM period".to_owned(),
            _ => self.name().trim_start_matches("wifi.").replace(['_', '.'], " "),
        }
    }

    /// What several of its levels are called: `mechanisms`.
    pub fn plural(self) -> String {
        let label = self.label();
        match label.strip_suffix('y') {
            Some(stem) if !label.ends_with("lay") => format!("{stem}ies"),
            _ if label.ends_with('s') => label,
            _ => format!("{label}s"),
        }
    }

    /// Whether its levels are names that say what they are.
    fn has_names(self) -> bool {
        use Factor::*;
        matches!(self, Replica | Os | Mechanism | Translator | CongestionControl | Generator | Programs)
    }

    /// A level by itself: `IPv6`, `128 B`, `6in4`, `MTU 1280`.
    pub fn level_label(self, level: &str) -> String {
        match self {
            factor if factor.is_setting() && !factor.has_names() && !level.is_empty() => {
                format!("{} {level}", factor.label())
            }
            factor => factor.level_below(level),
        }
    }

    /// A level below its factor's label: `IPv6`, `128 B`, `1280`.
    pub fn level_below(self, level: &str) -> String {
        match (self, level) {
            (Factor::Family, "ipv4") => "IPv4".to_owned(),
            (Factor::Family, "ipv6") => "IPv6".to_owned(),
            (Factor::Transport, transport) => transport.to_uppercase(),
            (Factor::SizeOf, part) if !part.is_empty() => format!("size of a {part}"),
            (Factor::Size, size) => format!("{size} B"),
            (_, level) => level.to_owned(),
        }
    }
}

impl Cell {
    /// The whole cell: `IPv6 TCP 128 B 6in4`. Sizes are of payloads unless it says so.
    pub fn label(&self) -> String {
        self.label_without(None)
    }

    /// The same without a factor's level.
    pub fn label_without(&self, without: Option<Factor>) -> String {
        let size_of = (self.size_of != SizeOf::Payload).then_some(Factor::SizeOf);
        let factors = [Factor::Family, Factor::Transport, Factor::Size].into_iter().chain(size_of);
        let levels = factors.chain([Factor::Replica]).map(|factor| (factor, self.level(factor)));
        let all = levels.chain(self.settings.levels()).filter(|(factor, _)| Some(*factor) != without);
        let labels = all.map(|(factor, level)| factor.level_label(&level));
        labels.filter(|level| !level.is_empty()).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Metric;
    use crate::factors::family::{Family, Transport};
    use std::collections::BTreeSet;

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
}
