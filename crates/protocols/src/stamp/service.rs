//! A STAMP session-reflector on sockets: `agent --stamp`.

use crate::stamp::{PORT, StampKey};
use stacklab_traffic::host::zone::ListenAddress;
use std::path::Path;
use std::thread::JoinHandle;

/// Why there is no reflector, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StampError(String);

/// Reads where to wait for packets.
///
/// # Errors
/// States what is expected.
pub fn place(text: &str) -> Result<ListenAddress, String> {
    Ok(text.parse::<ListenAddress>()?.with_default(PORT))
}

/// Reads a key of STAMP from a file.
pub fn key(path: &Path) -> Result<StampKey, StampError> {
    let file = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|reason| StampError(format!("could not read the STAMP key from {file}: {reason}")))?;
    StampKey::from_hex(&text).map_err(|reason| {
        StampError(format!("{file}: {reason}: make one with `head -c 16 /dev/urandom | xxd -p`"))
    })
}

/// Reflectors at work, each on its thread, until the user interrupts.
pub struct Reflectors(Vec<JoinHandle<Result<(), StampError>>>);

impl Reflectors {
    /// Waits until they end.
    pub fn wait(self) -> Result<(), StampError> {
        self.0.into_iter().try_for_each(|thread| thread.join().expect("a reflector does not panic"))
    }

    /// Refuses: this system gives no arrival times and no TTL here.
    #[cfg(not(target_os = "linux"))]
    pub fn start(
        _: &ListenAddress,
        _: Option<StampKey>,
        _: bool,
        _: u32,
        _: &'static std::sync::atomic::AtomicBool,
    ) -> Result<Self, StampError> {
        Err(failed("a STAMP reflector needs Linux"))
    }
}

/// A socket cannot wait for packets, or has failed.
fn failed(reason: impl std::fmt::Display) -> StampError {
    StampError(format!(
        "{reason}; port 862 needs privileges: without them name another one, as in --stamp :8620"
    ))
}

#[cfg(target_os = "linux")]
mod linux {
    use super::{Reflectors, StampError, failed};
    use crate::stamp::{Arrived, Codec, ErrorEstimate, PORT, Reflector, SENDER_TTL, StampKey, TimeFormat};
    use stacklab_traffic::host::now_unix_ns;
    use stacklab_traffic::host::zone::ListenAddress;
    use stacklab_traffic::peer::{Service, clock_error_ns};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    impl Reflectors {
        /// Binds a socket for each family and begins to answer, at most this many packets per second for each client.
        pub fn start(
            place: &ListenAddress,
            key: Option<StampKey>,
            stateful: bool,
            per_second: u32,
            interrupted: &'static AtomicBool,
        ) -> Result<Self, StampError> {
            let addresses =
                place.of_each_family(PORT).map_err(|error| failed(format_args!("{place}: {error}")))?;
            let several = addresses.len() > 1;
            let (services, errors): (Vec<_>, Vec<_>) = addresses
                .into_iter()
                .map(|address| Service::bind(address, SENDER_TTL).map_err(failed))
                .partition(Result::is_ok);
            // A host without IPv6 serves the other family.
            if let Some(Err(error)) = errors.into_iter().next_back()
                && (services.is_empty() || !several)
            {
                return Err(error);
            }
            let error = ErrorEstimate::new(TimeFormat::Ntp, clock_error_ns());
            let codec = Codec::new(key);
            let start = |mut service: Service| {
                let how = if stateful { "stateful" } else { "stateless" };
                eprintln!("stacklab: STAMP reflector on {}, {how}", service.address());
                let mut reflector = Reflector::new(codec.clone(), error, stateful).limited(per_second);
                thread::spawn(move || answer(&mut service, &mut reflector, interrupted))
            };
            Ok(Reflectors(services.into_iter().flatten().map(start).collect()))
        }
    }

    fn answer(
        service: &mut Service,
        reflector: &mut Reflector,
        interrupted: &AtomicBool,
    ) -> Result<(), StampError> {
        let is_over = || interrupted.load(Ordering::Relaxed);
        let answered = service.run(is_over, |message, datagram| {
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
        });
        answered.map_err(failed)
    }
}
