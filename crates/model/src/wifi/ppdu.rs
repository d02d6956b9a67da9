//! The time of one frame on air.

use crate::wifi::mcs::Mcs;
use crate::wifi::rates::{Band, Guard, LegacyRate, US, Width};

/// Bits before and after the PSDU: SERVICE and tail. One encoder serves all rates up to 300 Mbit/s (N_ES = 1).
const SERVICE_AND_TAIL_BITS: u64 = 16 + 6;
/// Training and SIGNAL of an OFDM frame (section 17.3.2.2).
const OFDM_PREAMBLE_NS: u64 = 20 * US;
/// L-STF, L-LTF, L-SIG, HT-SIG and HT-STF of an HT-mixed frame (section 19.3.9.2). An HT-LTF for each stream follows.
const HT_PREAMBLE_NS: u64 = 32 * US;
const HT_LTF_NS: u64 = 4 * US;
/// Long preamble and header (section 16.2.2).
const DSSS_PREAMBLE_NS: u64 = 192 * US;
/// Frames of an OFDM channel end with a symbol of this length.
const SYMBOL_NS: u64 = 4 * US;

/// A PPDU: its time on air, in two parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Ppdu {
    /// Preamble, PHY headers and signal extension.
    pub preamble_ns: u64,
    /// Symbols with the PSDU.
    pub data_ns: u64,
}

impl Ppdu {
    /// All of its time.
    pub fn total_ns(self) -> u64 {
        self.preamble_ns + self.data_ns
    }

    /// An HT-mixed PPDU of `bytes` (TXTIME, section 19.4.3).
    pub(super) fn ht(band: Band, width: Width, guard: Guard, mcs: Mcs, bytes: u32) -> Self {
        let symbols = (SERVICE_AND_TAIL_BITS + 8 * u64::from(bytes)).div_ceil(mcs.bits_per_symbol(width));
        Ppdu {
            preamble_ns: HT_PREAMBLE_NS + HT_LTF_NS * mcs.streams() + band.signal_extension_ns(),
            data_ns: (symbols * guard.symbol_ns()).next_multiple_of(SYMBOL_NS),
        }
    }

    /// A PPDU of `bytes` at a legacy rate: OFDM (sections 17.4.3 and 18.5.3.2), or DSSS with the long preamble (section
    /// 16.3.4).
    pub(super) fn legacy(band: Band, rate: LegacyRate, bytes: u32) -> Self {
        let bits = 8 * u64::from(bytes);
        if rate.is_dsss() {
            let data_ns = (bits * US).div_ceil(rate.kbit_per_second()) * US;
            return Ppdu { preamble_ns: DSSS_PREAMBLE_NS, data_ns };
        }
        let bits_per_symbol = rate.kbit_per_second() * SYMBOL_NS / 1_000_000;
        Ppdu {
            preamble_ns: OFDM_PREAMBLE_NS + band.signal_extension_ns(),
            data_ns: (SERVICE_AND_TAIL_BITS + bits).div_ceil(bits_per_symbol) * SYMBOL_NS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wifi::mpdu::{Security, group_mpdu_bytes};

    #[test]
    fn control_frames_take_the_usual_time() {
        let at = |rate, bytes| Ppdu::legacy(Band::Ghz5, rate, bytes).total_ns() / US;
        // ACK and compressed BlockAck, microseconds.
        assert_eq!([6, 12, 24, 54].map(|mbit| at(of(mbit), 14)), [44, 32, 28, 24]);
        assert_eq!([6, 12, 24, 54].map(|mbit| at(of(mbit), 32)), [68, 44, 32, 28]);
        assert_eq!(Ppdu::legacy(Band::Ghz2, of(24), 14).total_ns(), 34 * US);
    }

    fn of(mbit: u64) -> LegacyRate {
        let mut all = LegacyRate::ALL.iter().copied().filter(|rate| !rate.is_dsss());
        all.find(|rate| rate.kbit_per_second() == mbit * 1000).unwrap()
    }

    #[test]
    fn data_frames_take_the_time_of_the_worked_examples() {
        let mcs = |index| Mcs::new(index).unwrap();
        let ht = |width, guard, index, bytes| Ppdu::ht(Band::Ghz2, width, guard, mcs(index), bytes);
        // 89 symbols of 1080 bits: 320.4 us, in whole symbols of 4 us.
        let ppdu = ht(Width::Mhz40, Guard::Short, 15, 11_966);
        assert_eq!((ppdu.preamble_ns, ppdu.data_ns), (46 * US, 324 * US));
        assert_eq!(ht(Width::Mhz40, Guard::Long, 15, 11_966).data_ns, 356 * US);
        // 462 symbols of 26 bits, one stream.
        let ppdu = ht(Width::Mhz20, Guard::Long, 0, 1498);
        assert_eq!((ppdu.preamble_ns, ppdu.data_ns), (42 * US, 462 * 4 * US));
    }

    #[test]
    fn group_frames_at_one_megabit_take_their_bytes_and_the_long_preamble() {
        // ARP; a neighbour solicitation with its source link-layer address; a router advertisement with that, an MTU
        // and a prefix.
        let packets = [28, 40 + 24 + 8, 40 + 16 + 8 + 8 + 32];
        let at = |security, rate| {
            packets.map(|packet| {
                Ppdu::legacy(Band::Ghz2, rate, group_mpdu_bytes(security, packet)).total_ns() / US
            })
        };
        assert_eq!(at(Security::Wpa2, LegacyRate::Dsss1), [832, 1184, 1440]);
        assert_eq!(at(Security::Open, LegacyRate::Dsss1), [704, 1056, 1312]);
        assert_eq!(at(Security::Wpa2, LegacyRate::Ofdm6), [138, 198, 238]);
        // 124 bytes: 180.4 us at 5.5 Mbit/s, 90.2 us at 11 Mbit/s.
        assert_eq!(at(Security::Wpa2, LegacyRate::Cck5)[1], 192 + 181);
        assert_eq!(at(Security::Wpa2, LegacyRate::Cck11)[1], 192 + 91);
    }
}
