//! The session-reflector: what it answers, and on which sockets (`agent --stamp`).

use crate::stamp::PORT;
use crate::stamp::clients::RateLimit;
use crate::stamp::key::StampKey;
use crate::stamp::packet::{Codec, ReflectorPacket};
use crate::stamp::sessions::Sessions;
use crate::stamp::time::ErrorEstimate;
use crate::stamp::tlv::{self, TimestampInfo};
use stacklab_model::say;
use stacklab_traffic::host::files::read_text_file;
use stacklab_traffic::host::zone::ListenAddress;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;

#[cfg(target_os = "linux")]
use {
    crate::stamp::packet::SENDER_TTL,
    crate::stamp::time::TimeFormat,
    stacklab_traffic::host::now_unix_ns,
    stacklab_traffic::peer::{Service, clock_error_ns},
    std::sync::atomic::Ordering,
    std::thread,
};

/// What came with a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrived {
    /// Who sent it.
    pub peer: SocketAddr,
    /// T2, nanoseconds since 1970.
    pub unix_ns: u64,
    /// TTL, or hop limit; 0 if it is not known.
    pub ttl: u8,
    /// Code point and ECN bits.
    pub traffic_class: u8,
}

/// An answer that has no T3 yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingAnswer {
    answer: ReflectorPacket,
    /// The code point to answer with.
    pub code_point: u8,
}

/// A session-reflector: stateless, or stateful with a counter for each session.
pub struct Reflector {
    codec: Codec,
    error: ErrorEstimate,
    sessions: Option<Sessions>,
    limit: Option<RateLimit>,
}

impl Reflector {
    /// A reflector whose clock is as good as `error` says. Timestamps have the format of those that they answer.
    pub fn new(codec: Codec, error: ErrorEstimate, stateful: bool) -> Self {
        let sessions = stateful.then(Sessions::default);
        Reflector { codec, error, sessions, limit: None }
    }

    /// The same, which answers each client at most this many packets per second, and a burst of one second.
    pub fn with_rate_limit(self, per_second: u32) -> Self {
        Reflector { limit: Some(RateLimit::new(per_second)), ..self }
    }

    /// Turns a packet into its answer, which has the same length: whoever forges a sender's address has no gain. Only
    /// T3 is missing. `None` for what is not answered: no packet of STAMP, one beyond the rate limit, and what another
    /// reflector may have sent, which would answer again.
    pub fn reflect(&mut self, message: &mut [u8], arrived: &Arrived) -> Option<PendingAnswer> {
        if !may_be_sender(arrived.peer.port()) || self.codec.is_answer(message) {
            return None;
        }
        if self.limit.as_mut().is_some_and(|limit| !limit.admits(arrived.peer.ip(), arrived.unix_ns)) {
            return None;
        }
        let probe = self.codec.read_probe(message)?;
        let error = self.error.with_format(probe.error.format);
        let sender = (arrived.peer, probe.session);
        let counted = self.sessions.as_mut().and_then(|sessions| sessions.count(sender, arrived.unix_ns));
        // Without a count, as a stateless reflector, from which a sender learns that there is none.
        let sequence = counted.unwrap_or(probe.sequence);
        let (base, rest) = message.split_at_mut(self.codec.base_bytes());
        let code_point =
            tlv::reflect(self.codec.key.as_ref(), base, rest, arrived.traffic_class, TimestampInfo::SOFTWARE);
        let answer = ReflectorPacket {
            sequence,
            timestamp: 0,
            error,
            session: probe.session,
            received: error.format.bits(arrived.unix_ns),
            sender_sequence: probe.sequence,
            sender_timestamp: probe.timestamp,
            sender_error: probe.error,
            sender_ttl: arrived.ttl,
        };
        Some(PendingAnswer { answer, code_point })
    }

    /// Writes the answer with T3, nanoseconds since 1970.
    pub fn finish(&self, pending: PendingAnswer, unix_ns: u64, message: &mut [u8]) {
        let timestamp = pending.answer.error.format.bits(unix_ns);
        self.codec.write_answer(&ReflectorPacket { timestamp, ..pending.answer }, message);
        let (base, rest) = message.split_at_mut(self.codec.base_bytes());
        tlv::seal(self.codec.key.as_ref(), base, rest);
    }
}

/// Whether a session-sender may send from this port. Ports below 1024 are those of services, which would answer an
/// answer (echo, chargen); but some senders use the port of STAMP themselves.
fn may_be_sender(port: u16) -> bool {
    port >= 1024 || port == PORT
}

/// Reads where to wait for packets.
pub fn place(text: &str) -> Result<ListenAddress, String> {
    Ok(text.parse::<ListenAddress>()?.with_default(PORT))
}

/// Reads a key of STAMP from a file.
pub fn key(path: &Path) -> Result<StampKey, String> {
    let file = path.display();
    let text = read_text_file(path)
        .map_err(|reason| format!("could not read the STAMP key from {file}: {reason}"))?;
    StampKey::from_hex(&text).ok_or_else(|| {
        format!(
            "{file}: a STAMP key is at least 32 hexadecimal digits (16 bytes): make one with `head -c 16 /dev/urandom | xxd -p`"
        )
    })
}

/// Reflectors at work, each on its thread, until the user interrupts.
pub struct Reflectors(Vec<JoinHandle<Result<(), String>>>);

impl Reflectors {
    /// Waits until they end.
    pub fn wait(self) -> Result<(), String> {
        self.0.into_iter().try_for_each(|thread| thread.join().expect("a reflector does not panic"))
    }

    /// Refuses: this system gives no arrival times and no TTL here.
    #[cfg(not(target_os = "linux"))]
    pub fn start(
        _: &ListenAddress,
        _: Option<StampKey>,
        _: bool,
        _: u32,
        _: &'static AtomicBool,
    ) -> Result<Self, String> {
        Err(advise_port("a STAMP reflector needs Linux"))
    }
}

/// A socket cannot wait for packets, or has failed.
fn advise_port(reason: impl std::fmt::Display) -> String {
    format!("{reason}; port 862 needs privileges: without them name another one, as in --stamp :8620")
}

#[cfg(target_os = "linux")]
impl Reflectors {
    /// Binds a socket for each family and begins to answer, at most this many packets per second for each client.
    pub fn start(
        place: &ListenAddress,
        key: Option<StampKey>,
        stateful: bool,
        per_second: u32,
        interrupted: &'static AtomicBool,
    ) -> Result<Self, String> {
        let addresses =
            place.of_each_family(PORT).map_err(|error| advise_port(format_args!("{place}: {error}")))?;
        let several = addresses.len() > 1;
        let (services, errors): (Vec<_>, Vec<_>) = addresses
            .into_iter()
            .map(|address| Service::bind(address, SENDER_TTL).map_err(advise_port))
            .partition(Result::is_ok);
        // A host without IPv6 serves the other family.
        if let Some(Err(error)) = errors.into_iter().next_back()
            && (services.is_empty() || !several)
        {
            return Err(error);
        }
        let error = ErrorEstimate::new(TimeFormat::Ntp, clock_error_ns());
        let codec = Codec::new(key);
        let how = if stateful { "stateful" } else { "stateless" };
        let mut threads = Vec::new();
        for mut service in services.into_iter().flatten() {
            say!("stacklab: STAMP reflector on {}, {how}", service.address());
            let mut reflector = Reflector::new(codec.clone(), error, stateful).with_rate_limit(per_second);
            threads.push(thread::spawn(move || answer(&mut service, &mut reflector, interrupted)));
        }
        Ok(Reflectors(threads))
    }
}

#[cfg(target_os = "linux")]
fn answer(service: &mut Service, reflector: &mut Reflector, interrupted: &AtomicBool) -> Result<(), String> {
    let answered = service.run(
        || interrupted.load(Ordering::Relaxed),
        |message, datagram| {
            let arrived = Arrived {
                peer: datagram.peer,
                unix_ns: datagram.unix_ns,
                ttl: datagram.ttl,
                traffic_class: datagram.traffic_class,
            };
            let pending = reflector.reflect(message, &arrived)?;
            // As late as possible.
            reflector.finish(pending, now_unix_ns(), message);
            Some(pending.code_point << 2)
        },
    );
    answered.map_err(advise_port)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamp::packet::tests::{codecs, probe};
    use crate::stamp::packet::{SENDER_TTL, SenderPacket};
    use crate::stamp::sessions::SESSION_IDLE_NS;
    use crate::stamp::time::TimeFormat;
    use crate::stamp::tlv::{ClassOfService, Extensions};

    const NOW: u64 = 1_795_536_000_000_000_000;

    fn arrive(port: u16, unix_ns: u64) -> Arrived {
        let peer = SocketAddr::from(([192, 0, 2, 1], port));
        Arrived { peer, unix_ns, ttl: SENDER_TTL - 3, traffic_class: 46 << 2 | 1 }
    }

    fn error() -> ErrorEstimate {
        ErrorEstimate::new(TimeFormat::Ntp, Some(5_000))
    }

    /// A packet with these TLVs, and its answer.
    fn exchange(reflector: &mut Reflector, codec: &Codec, extensions: &Extensions, sequence: u32) -> Vec<u8> {
        let mut message = vec![0; codec.probe_bytes(extensions)];
        codec.write_probe(&SenderPacket { sequence, ..probe() }, extensions, &mut message);
        let pending = reflector.reflect(&mut message, &arrive(5_000, NOW)).unwrap();
        reflector.finish(pending, NOW + 250, &mut message);
        message
    }

    #[test]
    fn answer_has_both_times_ttl_and_the_senders_fields() {
        for codec in codecs() {
            let mut reflector = Reflector::new(codec.clone(), error(), false);
            let message = exchange(&mut reflector, &codec, &Extensions::default(), 77);
            let answer = codec.read_answer(&message).unwrap();
            let times = [answer.received, answer.timestamp].map(|bits| TimeFormat::Ntp.unix_ns(bits, NOW));
            assert_eq!(times, [Some(NOW), Some(NOW + 250)]);
            assert_eq!((answer.sender_ttl, answer.session), (SENDER_TTL - 3, probe().session));
            assert_eq!((answer.sender_timestamp, answer.sender_error), (probe().timestamp, probe().error));
            assert_eq!((answer.sequence, answer.sender_sequence, answer.error), (77, 77, error()));
        }
    }

    #[test]
    fn an_answer_has_the_format_of_its_packets_timestamps() {
        for format in [TimeFormat::Ntp, TimeFormat::Ptp] {
            let [codec, _] = codecs();
            let mut reflector = Reflector::new(codec.clone(), error(), false);
            let mut message = [0; 44];
            let asked = SenderPacket { error: probe().error.with_format(format), ..probe() };
            codec.write_probe(&asked, &Extensions::default(), &mut message);
            let pending = reflector.reflect(&mut message, &arrive(5_000, NOW)).unwrap();
            reflector.finish(pending, NOW + 250, &mut message);
            let answer = codec.read_answer(&message).unwrap();
            assert_eq!(answer.error, error().with_format(format));
            let times = [answer.received, answer.timestamp].map(|bits| format.unix_ns(bits, NOW));
            assert_eq!(times, [Some(NOW), Some(NOW + 250)], "{format:?}");
        }
    }

    #[test]
    fn message_of_another_reflector_is_not_answered() {
        for codec in codecs() {
            let padding = Extensions { padding: Some(33), ..Extensions::default() };
            for extensions in [Extensions::default(), padding] {
                let mut reflector = Reflector::new(codec.clone(), error(), true);
                let mut message = exchange(&mut reflector, &codec, &extensions, 1);
                assert_eq!(reflector.reflect(&mut message, &arrive(5_000, NOW)), None);
            }
            let mut message = vec![0; codec.base_bytes()];
            codec.write_probe(&probe(), &Extensions::default(), &mut message);
            let mut reflector = Reflector::new(codec.clone(), error(), false);
            for (port, is_answered) in
                [(1, false), (7, false), (19, false), (861, false), (862, true), (863, false), (1023, false)]
                    .into_iter()
                    .chain([(1024, true), (8620, true), (65_535, true)])
            {
                let pending = reflector.reflect(&mut message.clone(), &arrive(port, NOW));
                assert_eq!(pending.is_some(), is_answered, "{port}");
            }
        }
    }

    /// How many copies of a packet are answered, of 20 that arrive at the same time.
    fn count_answers(reflector: &mut Reflector, packet: [u8; 44], port: u16, unix_ns: u64) -> usize {
        let arrived = arrive(port, unix_ns);
        (0..20).filter(|_| reflector.reflect(&mut { packet }, &arrived).is_some()).count()
    }

    #[test]
    fn a_client_beyond_the_limit_is_not_answered() {
        let [codec, _] = codecs();
        let mut reflector = Reflector::new(codec.clone(), error(), true).with_rate_limit(5);
        let mut message = [0; 44];
        codec.write_probe(&probe(), &Extensions::default(), &mut message);
        assert_eq!(count_answers(&mut reflector, message, 5_000, NOW), 6);
        let other_port = count_answers(&mut reflector, message, 5_001, NOW);
        assert_eq!(other_port, 0, "another port is the same client");
        assert_eq!(count_answers(&mut reflector, message, 5_000, NOW + 2_000_000_000), 6);
    }

    #[test]
    fn stateful_reflector_counts_arrivals_by_session() {
        let [codec, _] = codecs();
        let mut reflector = Reflector::new(codec.clone(), error(), true);
        let sequences: Vec<u32> = [0, 1, 4, 9]
            .into_iter()
            .map(|sent| {
                codec
                    .read_answer(&exchange(&mut reflector, &codec, &Extensions::default(), sent))
                    .unwrap()
                    .sequence
            })
            .collect();
        assert_eq!(sequences, [0, 1, 2, 3]);
        let mut message = [0; 44];
        codec.write_probe(&probe(), &Extensions::default(), &mut message);
        let mut next =
            |at: &Arrived| reflector.reflect(&mut message.clone(), at).map(|pending| pending.answer.sequence);
        assert_eq!(next(&arrive(5_001, NOW)), Some(0), "another port is another session");
        assert_eq!(next(&arrive(5_000, NOW + SESSION_IDLE_NS)), Some(4));
        assert_eq!(next(&arrive(5_000, NOW + 3 * SESSION_IDLE_NS)), Some(0), "forgotten");
    }

    #[test]
    fn tlvs_are_answered_and_proved() {
        let extensions = Extensions {
            timestamps: Some(TimestampInfo::default()),
            class: Some(ClassOfService { asked: 10, ..ClassOfService::default() }),
            padding: Some(33),
        };
        for codec in codecs() {
            let mut reflector = Reflector::new(codec.clone(), error(), true);
            let mut message = exchange(&mut reflector, &codec, &extensions, 5);
            let said = codec.read_extensions(&message).unwrap();
            assert_eq!(said.timestamps, Some(TimestampInfo::SOFTWARE));
            assert_eq!(said.class, Some(ClassOfService { asked: 10, arrived: 46, ecn: 1, refused: 0 }));
            assert_eq!(said.padding, Some(33));
            message[codec.base_bytes() + 5] ^= 1;
            assert_eq!(codec.read_extensions(&message).is_none(), codec.key.as_ref().is_some());
        }
    }

    #[test]
    fn changed_tlvs_are_answered_as_such_and_do_nothing() {
        let [_, codec] = codecs();
        let class = Some(ClassOfService { asked: 10, ..ClassOfService::default() });
        let extensions = Extensions { class, ..Extensions::default() };
        let mut message = vec![0; codec.probe_bytes(&extensions)];
        codec.write_probe(&probe(), &extensions, &mut message);
        message[codec.base_bytes() + 4] ^= 0x80;
        let mut reflector = Reflector::new(codec.clone(), error(), false);
        let pending = reflector.reflect(&mut message, &arrive(5_000, NOW)).unwrap();
        assert_eq!(pending.code_point, 46, "as it arrived");
        assert_eq!(message[codec.base_bytes()], 0x20);
        reflector.finish(pending, NOW, &mut message);
        assert_eq!(codec.read_extensions(&message).unwrap().class, None);
    }
}
