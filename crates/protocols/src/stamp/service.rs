//! A STAMP session-reflector on sockets: `agent --stamp`.

use crate::stamp::{KeyError, PORT, StampKey};
use stacklab_traffic::host::listen_address::ListenAddress;
use std::io;
use std::path::{Path, PathBuf};

#[cfg(target_os = "linux")]
pub use linux::Reflectors;
#[cfg(not(target_os = "linux"))]
pub use other::Reflectors;

/// Why there is no reflector.
#[derive(Debug, thiserror::Error)]
pub enum StampError {
    /// The file of the key cannot be read.
    #[error("could not read the STAMP key from {}: {reason}", path.display())]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        reason: io::Error,
    },
    /// The file has no key.
    #[error("{}: {reason}: make one with `head -c 16 /dev/urandom | xxd -p`", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: KeyError,
    },
    /// It cannot wait for packets, or a socket failed.
    #[error("{0}; port 862 needs privileges: without them name another one, as in --stamp :8620")]
    Socket(String),
}

/// Reads where to wait for packets.
///
/// # Errors
/// What is expected.
pub fn place(text: &str) -> Result<ListenAddress, String> {
    Ok(text.parse::<ListenAddress>()?.with_default(PORT))
}

/// Reads a key of STAMP.
///
/// # Errors
/// When the file cannot be read, or has none.
pub fn key(path: &Path) -> Result<StampKey, StampError> {
    let text = std::fs::read_to_string(path)
        .map_err(|reason| StampError::KeyFile { path: path.to_owned(), reason })?;
    StampKey::from_hex(&text).map_err(|reason| StampError::Key { path: path.to_owned(), reason })
}

#[cfg(target_os = "linux")]
mod linux {
    use super::StampError;
    use crate::stamp::{Arrived, Codec, ErrorEstimate, PORT, Reflector, SENDER_TTL, StampKey, TimeFormat};
    use stacklab_traffic::host::listen_address::ListenAddress;
    use stacklab_traffic::host::unix_time::now_unix_ns;
    use stacklab_traffic::peer::{Service, clock_error_ns};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread::{self, JoinHandle};

    /// Reflectors at work, each on its thread, until the user interrupts.
    pub struct Reflectors(Vec<JoinHandle<Result<(), StampError>>>);

    impl Reflectors {
        /// Binds a socket for each family and begins to answer, at most this many packets per second for each client.
        ///
        /// # Errors
        /// When no socket can be bound there.
        pub fn start(
            place: &ListenAddress,
            key: Option<StampKey>,
            stateful: bool,
            per_second: u32,
            interrupted: &'static AtomicBool,
        ) -> Result<Self, StampError> {
            let addresses = place
                .of_each_family(PORT)
                .map_err(|error| StampError::Socket(format!("{place}: {error}")))?;
            let several = addresses.len() > 1;
            let mut services = Vec::new();
            let mut failed = None;
            for address in addresses {
                match Service::bind(address, SENDER_TTL) {
                    Ok(service) => services.push(service),
                    // A host without IPv6 serves the other family.
                    Err(error) => failed = Some(StampError::Socket(error.to_string())),
                }
            }
            if let Some(error) = failed
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
            Ok(Reflectors(services.into_iter().map(start).collect()))
        }

        /// Waits until they end.
        ///
        /// # Errors
        /// When a socket has failed.
        pub fn wait(self) -> Result<(), StampError> {
            self.0.into_iter().try_for_each(|thread| thread.join().expect("a reflector does not panic"))
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
        answered.map_err(|error| StampError::Socket(error.to_string()))
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use super::StampError;
    use crate::stamp::StampKey;
    use stacklab_traffic::host::listen_address::ListenAddress;
    use std::sync::atomic::AtomicBool;

    /// None: this system gives no arrival times and no TTL here.
    pub enum Reflectors {}

    impl Reflectors {
        /// Refuses.
        ///
        /// # Errors
        /// Always.
        pub fn start(
            _: &ListenAddress,
            _: Option<StampKey>,
            _: bool,
            _: u32,
            _: &'static AtomicBool,
        ) -> Result<Self, StampError> {
            Err(StampError::Socket("a STAMP reflector needs Linux".to_owned()))
        }

        /// Nothing to wait for.
        ///
        /// # Errors
        /// None.
        pub fn wait(self) -> Result<(), StampError> {
            match self {}
        }
    }
}
