//! The ports at which an agent's host receives the traffic of trials.

use std::fmt;
use std::io;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// One port, or several in a row: as many trials, or directions of one, can be under way at an address. By default any
/// port that is free.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DataPorts(Option<RangeInclusive<u16>>);

impl DataPorts {
    /// What `listen` makes at the first port that is free.
    pub(crate) fn first_free<T>(&self, listen: impl Fn(u16) -> io::Result<T>) -> io::Result<T> {
        let Some(ports) = &self.0 else { return listen(0) };
        for port in ports.clone() {
            match listen(port) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                listening => return listening,
            }
        }
        let text = format!(
            "port {self} is in use; each direction takes one: start the agent with more, as in --data-port 5203-5206"
        );
        Err(io::Error::new(io::ErrorKind::AddrInUse, text))
    }
}

/// `5203`, or `5203-5206`.
impl FromStr for DataPorts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let port = |text: &str| text.parse().ok().filter(|port| *port > 0);
        match (port(first), port(last)) {
            (Some(first), Some(last)) if first <= last => Ok(DataPorts(Some(first..=last))),
            _ => Err("expected a port such as 5203, or ports such as 5203-5206".to_owned()),
        }
    }
}

/// As it is read.
impl fmt::Display for DataPorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(ports) if ports.start() == ports.end() => write!(f, "{}", ports.start()),
            Some(ports) => write!(f, "{}-{}", ports.start(), ports.end()),
            None => f.write_str("any"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_ports_and_takes_the_first_free_one() {
        for text in ["5203", "5203-5206"] {
            assert_eq!(text.parse::<DataPorts>().unwrap().to_string(), text);
        }
        for wrong in ["", "0", "0-5", "5-4", "70000", "a", "1-2-3"] {
            assert!(wrong.parse::<DataPorts>().is_err(), "{wrong}");
        }
        let ports: DataPorts = "5203-5204".parse().unwrap();
        let free = |free: u16| {
            move |port| if port == free { Ok(port) } else { Err(io::ErrorKind::AddrInUse.into()) }
        };
        assert_eq!(ports.first_free(free(5204)).unwrap(), 5204);
        assert_eq!(DataPorts::default().first_free(free(0)).unwrap(), 0);
        let taken = ports.first_free(free(1)).unwrap_err().to_string();
        assert!(taken.contains("port 5203-5204 is in use"), "{taken}");
        let refused = ports.first_free(|_| Err::<(), _>(io::ErrorKind::PermissionDenied.into()));
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }
}
