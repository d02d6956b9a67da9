//! The frame that carries an IP packet.

use crate::names::named;

named! {
    /// The security of a BSS.
    pub enum Security("security") {
        /// None: frames are in the clear.
        Open = "open",
        /// WPA2-Personal, CCMP.
        Wpa2 = "wpa2",
        /// WPA3-Personal: SAE instead of the pre-shared key, CCMP alike.
        Wpa3 = "wpa3",
    }
}

/// Frame control, duration, three addresses, sequence control (section 9.2.4).
const HEADER_BYTES: u32 = 24;
/// The QoS control field, which group frames of an access point lack.
const QOS_BYTES: u32 = 2;
/// LLC and SNAP (RFC 1042).
const LLC_SNAP_BYTES: u32 = 8;
/// Frame check sequence (section 9.2.4.8).
pub const FCS_BYTES: u32 = 4;

impl Security {
    /// Bytes that the cipher adds: CCMP's header (8) and MIC (8) (section 12.5.3.2).
    pub fn cipher_bytes(self) -> u32 {
        match self {
            Security::Open => 0,
            Security::Wpa2 | Security::Wpa3 => 16,
        }
    }
}

/// Bytes of the QoS data frame that carries an IP packet to one receiver, FCS included.
pub fn mpdu_bytes(security: Security, packet_bytes: u32) -> u32 {
    group_mpdu_bytes(security, packet_bytes) + QOS_BYTES
}

/// Bytes of the data frame that carries a packet (IP or ARP) from an access point to a group, FCS included.
pub fn group_mpdu_bytes(security: Security, packet_bytes: u32) -> u32 {
    HEADER_BYTES + security.cipher_bytes() + LLC_SNAP_BYTES + packet_bytes + FCS_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::factors::family::{Family, Transport};

    #[test]
    fn a_message_has_the_bytes_that_captures_show() {
        // Captures of mac80211_hwsim are without the FCS.
        let captured = |security, family: Family| {
            mpdu_bytes(security, family.header_bytes() + Transport::Udp.header_bytes() + 1408) - FCS_BYTES
        };
        assert_eq!(captured(Security::Wpa2, Family::Ipv4), 1486);
        assert_eq!(captured(Security::Wpa2, Family::Ipv6), 1506);
        assert_eq!(captured(Security::Open, Family::Ipv4), 1470);
        assert_eq!(captured(Security::Wpa3, Family::Ipv6), 1506);
    }
}
