//! Which of a name's addresses are measured: of each family the first that accepts a connection. Their order is the
//! resolver's, which the system has sorted (RFC 6724). Unlike a browser (RFC 8305), the families do not race here: both
//! are measured.

use crate::probe::Prober;
use crate::probe::http::connect;
use crate::probe::pace::Interrupted;
use crate::target::Target;
use stacklab_model::{Family, ScopedAddr};
use std::io;
use std::time::Duration;

/// How long an address may take to accept a connection where there is another one.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Addresses of a family that are tried.
const MAX_TRIED: usize = 8;

impl Prober<'_> {
    /// Replaces the first address of a family by the next one that accepts a connection. If none of several does, the
    /// first is measured, and the others are named. A single address is not tried.
    pub(crate) fn choose_addresses(&mut self, target: &mut Target) -> Result<(), Interrupted> {
        for &family in Family::ALL {
            let further = target.further.remove(&family).unwrap_or_default();
            if further.is_empty() {
                continue;
            }
            let Ok(first) = target.address(family) else { continue };
            let all: Vec<ScopedAddr> = [first.clone()].into_iter().chain(further).collect();
            let mut refused = Vec::new();
            let mut taken = None;
            for address in all.iter().take(MAX_TRIED) {
                self.pace.probe()?;
                match connect(address, target.port, CONNECT_TIMEOUT) {
                    Ok(_) => {
                        taken = Some(address.clone());
                        break;
                    }
                    Err(error) => refused.push((address.clone(), describe(&error))),
                }
            }
            if taken.is_none() {
                let untried = all.iter().skip(MAX_TRIED);
                refused.extend(untried.map(|address| (address.clone(), "not tried".to_owned())));
                // Its own state has the reason.
                refused.remove(0);
            }
            target.addresses.insert(family, Ok(taken.unwrap_or_else(|| all[0].clone())));
            target.refused.insert(family, refused);
        }
        Ok(())
    }
}

fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
            format!("no answer within {} s", CONNECT_TIMEOUT.as_secs())
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::pace::Pace;
    use std::collections::BTreeMap;
    use std::net::TcpListener;
    use std::sync::atomic::AtomicBool;

    static NOT_INTERRUPTED: AtomicBool = AtomicBool::new(false);

    /// What is chosen of these addresses of IPv4: the address, and those that failed.
    fn choose(all: &[&str], port: u16) -> (String, Vec<String>) {
        let pace = Pace::new(1000.0, 1000, &NOT_INTERRUPTED);
        let mut prober = Prober { pace, tls: Err(String::new()), resolvers: &[], request_bytes: 0 };
        let mut all = all.iter().map(|text| text.parse::<ScopedAddr>().unwrap());
        let mut target = crate::look_up_target(&format!("http://127.0.0.1:{port}"), &[]).unwrap();
        target.addresses.insert(Family::Ipv4, Ok(all.next().unwrap()));
        target.further = BTreeMap::from([(Family::Ipv4, all.collect())]);
        assert!(prober.choose_addresses(&mut target).is_ok());
        let refused = target.refusals(Family::Ipv4).iter().map(|(address, _)| address.to_string()).collect();
        (target.address(Family::Ipv4).unwrap().to_string(), refused)
    }

    #[test]
    fn first_accepting_address_is_measured_others_named() {
        let listener = TcpListener::bind("127.0.0.3:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (taken, refused) = choose(&["127.0.0.2", "127.0.0.3", "127.0.0.4"], port);
        assert_eq!((taken.as_str(), refused), ("127.0.0.3", vec!["127.0.0.2".to_owned()]));
        assert_eq!(choose(&["127.0.0.3", "127.0.0.4"], port), ("127.0.0.3".to_owned(), vec![]));
        assert_eq!(choose(&["127.0.0.4"], port), ("127.0.0.4".to_owned(), vec![]));
    }

    #[test]
    fn first_failing_address_is_measured_if_none_accepts() {
        let port = TcpListener::bind("127.0.0.3:0").unwrap().local_addr().unwrap().port();
        let all: Vec<String> = (2..13).map(|host| format!("127.0.0.{host}")).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let (taken, refused) = choose(&all, port);
        assert_eq!((taken.as_str(), refused.len(), refused[9].as_str()), ("127.0.0.2", 10, "127.0.0.12"));
    }
}
