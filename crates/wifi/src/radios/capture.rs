//! A capture of what is on air: pcapng with radiotap headers. Responses are not in it. Pure but for the file.

use crate::medium::{Exchange, FrameId, Reception, SentFrame};
use crate::radios::header::has_data_rate;
use crate::radios::netlink::Frame;
use flate2::Crc;
use stacklab_model::wifi::{Guard, Radio, Width};
use std::collections::HashMap;
use std::io::{self, Write};

/// pcapng (draft-ietf-opsawg-pcapng): types of blocks, of the link, and of options.
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const RADIOTAP: u32 = 127;
const TIME_RESOLUTION: [u8; 8] = [9, 0, 1, 0, 9, 0, 0, 0];
const END_OF_OPTIONS: [u8; 4] = [0; 4];

/// Fields of radiotap (radiotap.org) by their bits.
const TSFT: u32 = 1 << 0;
const FLAGS: u32 = 1 << 1;
const RATE: u32 = 1 << 2;
const CHANNEL: u32 = 1 << 3;
const MCS: u32 = 1 << 19;
const AMPDU: u32 = 1 << 20;
/// Flags: the FCS is there, and is wrong.
const HAS_FCS: u8 = 0x10;
const BAD_FCS: u8 = 0x40;
/// Channel flags: 2.4 GHz; CCK, OFDM, or both.
const GHZ_2: u16 = 0x80;
const CCK: u16 = 0x20;
const OFDM: u16 = 0x40;
const BOTH: u16 = 0x400;
/// Known of an MCS: width, index, guard interval, format, FEC. The last two are zero: HT-mixed, BCC.
const MCS_KNOWN: u8 = 0x1f;
const MCS_40_MHZ: u8 = 1;
const MCS_SHORT_GUARD: u8 = 1 << 2;
/// Of an A-MPDU: whether this is the last frame is known, and it is.
const LAST_KNOWN: u16 = 1 << 2;
const LAST: u16 = 1 << 3;
/// The flag of a frame that is sent again, in its second byte.
const RETRY: u8 = 1 << 3;

pub(super) struct CaptureWriter<W> {
    out: W,
    radio: Radio,
    frequency: u16,
    /// The wall clock at the medium's beginning, nanoseconds since 1970.
    start_ns: u64,
}

impl<W: Write> CaptureWriter<W> {
    pub(super) fn begin(mut out: W, radio: Radio, frequency: u32, start_ns: u64) -> io::Result<Self> {
        let section = [BYTE_ORDER.to_ne_bytes(), [1, 0, 0, 0], [0xff; 4], [0xff; 4]].concat();
        block(&mut out, SECTION, &section)?;
        let link = [&RADIOTAP.to_ne_bytes()[..], &[0; 4], &TIME_RESOLUTION, &END_OF_OPTIONS].concat();
        block(&mut out, INTERFACE, &link)?;
        Ok(CaptureWriter { out, radio, frequency: frequency as u16, start_ns })
    }

    pub(super) fn write(&mut self, exchange: &Exchange, frames: &HashMap<FrameId, Frame>) -> io::Result<()> {
        let at = self.start_ns + exchange.begin_ns;
        for transmission in &exchange.transmissions {
            let count = transmission.frames.len();
            for (place, sent) in transmission.frames.iter().enumerate() {
                let Some(frame) = frames.get(&sent.id) else { continue };
                let aggregate = (count > 1).then_some((exchange.number, place + 1 == count));
                let packet = [self.radiotap(exchange.begin_ns, frame, sent, aggregate), on_air(frame, sent)];
                let packet = packet.concat();
                let length = (packet.len() as u32).to_ne_bytes();
                let time = [(at >> 32) as u32, at as u32].map(u32::to_ne_bytes).concat();
                block(&mut self.out, PACKET, &[&[0; 4][..], &time, &length, &length, &packet].concat())?;
            }
        }
        Ok(())
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// The radiotap header. Fields are aligned to their size, and little-endian.
    fn radiotap(
        &self,
        begin_ns: u64,
        frame: &Frame,
        sent: &SentFrame,
        aggregate: Option<(u64, bool)>,
    ) -> Vec<u8> {
        let settings = self.radio.settings();
        let lost = sent.outcome != Reception::Received;
        let flags = HAS_FCS | if lost { BAD_FCS } else { 0 };
        let mut present = TSFT | FLAGS | CHANNEL;
        let mut fields = Vec::new();
        fields.extend((begin_ns / 1000).to_le_bytes());
        fields.push(flags);
        if has_data_rate(frame) {
            present |= MCS;
            fields.push(0);
            fields.extend(self.frequency.to_le_bytes());
            fields.extend((GHZ_2 | BOTH).to_le_bytes());
            let width = if settings.width == Width::Mhz40 { MCS_40_MHZ } else { 0 };
            let guard = if settings.guard == Guard::Short { MCS_SHORT_GUARD } else { 0 };
            fields.extend([MCS_KNOWN, width | guard, settings.mcs]);
            if let Some((number, last)) = aggregate {
                present |= AMPDU;
                fields.extend([0; 3]);
                fields.extend((number as u32).to_le_bytes());
                fields.extend((LAST_KNOWN | if last { LAST } else { 0 }).to_le_bytes());
                fields.extend([0; 2]);
            }
        } else {
            present |= RATE;
            fields.push((settings.group_rate.kbit_per_second() / 500) as u8);
            fields.extend(self.frequency.to_le_bytes());
            let modulation = if settings.group_rate.is_dsss() { CCK } else { OFDM };
            fields.extend((GHZ_2 | modulation).to_le_bytes());
        }
        let length = 8 + fields.len() as u16;
        [&[0, 0][..], &length.to_le_bytes(), &present.to_le_bytes(), &fields].concat()
    }
}

fn on_air(frame: &Frame, sent: &SentFrame) -> Vec<u8> {
    let mut bytes = frame.bytes.clone();
    if sent.attempt > 1 {
        bytes[1] |= RETRY;
    }
    let check = frame_check(&bytes);
    bytes.extend(check.to_le_bytes());
    bytes
}

/// The frame check sequence (section 9.2.4.8): CRC-32.
fn frame_check(bytes: &[u8]) -> u32 {
    let mut check = Crc::new();
    check.update(bytes);
    check.sum()
}

/// Writes a block: its type, its length, a body of whole words, and its length again.
fn block(out: &mut impl Write, kind: u32, body: &[u8]) -> io::Result<()> {
    let padding = body.len().next_multiple_of(4) - body.len();
    let length = ((12 + body.len() + padding) as u32).to_ne_bytes();
    out.write_all(&kind.to_ne_bytes())?;
    out.write_all(&length)?;
    out.write_all(body)?;
    out.write_all(&[0; 4][..padding])?;
    out.write_all(&length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::medium::{NodeId, Receiver, Transmission};
    use crate::radios::netlink::{MAX_RATES, TxRate};
    use stacklab_model::wifi::{Ppdu, WifiSettings};

    #[test]
    fn the_check_of_a_frame_is_crc_32() {
        assert_eq!(frame_check(b"123456789"), 0xcbf4_3926);
    }

    fn make_frame(control: u8, cookie: u64) -> Frame {
        Frame {
            transmitter: [2, 0, 0, 0, 0, 1],
            bytes: [&[control, 0, 0, 0, 2, 0, 0, 0, 0, 3][..], &[0; 17]].concat(),
            wants_ack: true,
            frequency: 2412,
            rates: [TxRate::NONE; MAX_RATES],
            cookie,
        }
    }

    fn send(frames: Vec<SentFrame>) -> Transmission {
        Transmission {
            transmitter: NodeId(0),
            receiver: Receiver::Node(NodeId(1)),
            ppdu: Ppdu::default(),
            response_ns: 0,
            frames,
        }
    }

    #[test]
    fn capture_has_word_blocks_and_a_header_per_frame() {
        let frames = HashMap::from([(FrameId(0), make_frame(0x88, 0)), (FrameId(1), make_frame(0x40, 1))]);
        let first = SentFrame { id: FrameId(0), bytes: 31, attempt: 1, outcome: Reception::Received };
        let second = SentFrame { attempt: 2, outcome: Reception::Retried, ..first };
        let other = SentFrame { id: FrameId(1), ..first };
        let transmissions = vec![send(vec![first, second]), send(vec![other])];
        let exchange = Exchange { number: 7, begin_ns: 5_000_000, end_ns: 5_100_000, transmissions };
        let radio = WifiSettings::default().radio().unwrap();
        let mut capture = CaptureWriter::begin(Vec::new(), radio, 2412, 1 << 60).unwrap();
        capture.write(&exchange, &frames).unwrap();
        let mut kinds = Vec::new();
        let mut packets = Vec::new();
        let mut rest = &capture.out[..];
        while let Some((head, _)) = rest.split_at_checked(8) {
            let word = |at: usize| u32::from_ne_bytes(head[at..at + 4].try_into().unwrap());
            let (block, behind) = rest.split_at(word(4) as usize);
            assert_eq!(block[block.len() - 4..], block[4..8]);
            assert!(block.len().is_multiple_of(4));
            kinds.push(word(0));
            packets.push(block[8..block.len() - 4].to_vec());
            rest = behind;
        }
        assert_eq!(kinds, [SECTION, INTERFACE, PACKET, PACKET, PACKET]);
        let times: Vec<_> = packets[2..].iter().map(|packet| packet[4..12].to_vec()).collect();
        let at = (1_u64 << 60) + 5_000_000;
        assert_eq!(times[0], [(at >> 32) as u32, at as u32].map(u32::to_ne_bytes).concat());
        let radiotap: Vec<&[u8]> = packets[2..].iter().map(|packet| &packet[20..]).collect();
        // 5000 us, the FCS, 2412 MHz, MCS 15 at 40 MHz with the short guard interval, A-MPDU 7.
        let expected = [
            &[0, 0, 36, 0, 0x0b, 0, 0x18, 0, 0x88, 0x13, 0, 0, 0, 0, 0, 0, 0x10, 0, 0x6c, 0x09, 0x80, 4][..],
            &[0x1f, 5, 15, 0, 0, 0, 7, 0, 0, 0, 4, 0, 0, 0],
        ];
        assert_eq!(radiotap[0][..36], expected.concat());
        // Lost, the last of the A-MPDU, and sent for the second time.
        assert_eq!((radiotap[1][16], radiotap[1][32]), (0x50, 0x0c));
        assert_eq!((radiotap[0][37], radiotap[1][37]), (0, RETRY));
        // 6 Mbit/s.
        assert_eq!(radiotap[2][2], 22);
        assert_eq!(radiotap[2][16..22], [0x10, 12, 0x6c, 0x09, 0xc0, 0]);
        // 27 bytes and the FCS.
        assert_eq!(radiotap[2].len(), (22_usize + 31).next_multiple_of(4));
    }
}
