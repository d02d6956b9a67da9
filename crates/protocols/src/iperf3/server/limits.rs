//! What clients may ask of a server: whoever reaches it is served.

use crate::iperf3::{Parameters, Refusal};
use stacklab_model::Transport;
use stacklab_traffic::foreign::has_congestion_control;
use std::time::Duration;

/// Largest socket buffer, bytes.
const MOST_BUFFER: u32 = 16 << 20;
const SEGMENTS: std::ops::RangeInclusive<u32> = 88..=32_767;

/// The limits.
#[derive(Debug, Clone, Copy)]
pub struct ServerLimits {
    /// Clients at once.
    pub clients: usize,
    /// Longest test, with its omitted part.
    pub longest: Duration,
    /// Highest rate that it sends to one client, bits of payload per second.
    pub most_bits_per_second: f64,
}

impl ServerLimits {
    /// Whether a test is within the limits.
    pub fn check(&self, parameters: &Parameters) -> Result<(), (Refusal, String)> {
        let Parameters { omit_s, time_s, parallel, bandwidth, window, mss, .. } = *parameters;
        let asked = Duration::from_secs(u64::from(omit_s) + u64::from(time_s));
        if asked > self.longest {
            return Err((Refusal::Duration, format!("a test of {} s", asked.as_secs())));
        }
        if self.sends(parameters) && bandwidth as f64 * f64::from(parallel) > self.most_bits_per_second {
            return Err((Refusal::Rate, format!("{parallel} streams of {bandwidth} bit/s")));
        }
        if window.is_some_and(|bytes| bytes > MOST_BUFFER) {
            return Err((Refusal::Buffer, format!("a buffer of more than {MOST_BUFFER} bytes")));
        }
        if mss.is_some_and(|bytes| parameters.transport == Transport::Tcp && !SEGMENTS.contains(&bytes)) {
            return Err((Refusal::Mss, "a segment size that TCP cannot have".to_owned()));
        }
        match &parameters.congestion {
            Some(name) if !has_congestion_control(name) => {
                let reason = format!("the congestion control {name}, which this kernel would have to load");
                Err((Refusal::Unsupported, reason))
            }
            _ => Ok(()),
        }
    }

    /// The rate of each stream that the server sends, bits per second, where the client names none.
    pub fn share(&self, parameters: &Parameters) -> u64 {
        (self.most_bits_per_second / f64::from(parameters.parallel)) as u64
    }

    /// Maximum length of a test: one that ends by bytes or blocks has no length.
    pub fn lasts(&self, parameters: &Parameters) -> Duration {
        match parameters.time_s {
            0 => self.longest,
            seconds => Duration::from_secs(u64::from(parameters.omit_s) + u64::from(seconds)),
        }
    }

    fn sends(&self, parameters: &Parameters) -> bool {
        parameters.reverse || parameters.bidirectional
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_limits_is_refused_and_by_its_name() {
        let limits = ServerLimits { clients: 1, longest: Duration::from_secs(10), most_bits_per_second: 1e6 };
        let tcp = || Parameters::new(Transport::Tcp, 1000);
        let refused = |parameters: Parameters| limits.check(&parameters).map_err(|(refusal, _)| refusal);
        assert_eq!(refused(tcp()), Ok(()));
        assert_eq!(refused(Parameters { time_s: 9, omit_s: 2, ..tcp() }), Err(Refusal::Duration));
        let fast = Parameters { bandwidth: 600_000, parallel: 2, ..tcp() };
        assert_eq!(refused(fast.clone()), Ok(()), "it is the client that sends");
        assert_eq!(refused(Parameters { reverse: true, ..fast.clone() }), Err(Refusal::Rate));
        assert_eq!(limits.share(&fast), 500_000);
        assert_eq!(refused(Parameters { window: Some(1 << 30), ..tcp() }), Err(Refusal::Buffer));
        assert_eq!(refused(Parameters { mss: Some(1 << 20), ..tcp() }), Err(Refusal::Mss));
        assert_eq!(
            refused(Parameters { congestion: Some("nosuch".to_owned()), ..tcp() }),
            Err(Refusal::Unsupported)
        );
        assert_eq!(limits.lasts(&Parameters { time_s: 3, omit_s: 1, ..tcp() }), Duration::from_secs(4));
        assert_eq!(limits.lasts(&Parameters { bytes: 5, ..tcp() }), Duration::from_secs(10));
    }
}
