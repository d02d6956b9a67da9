//! The traffic that is counted.

use stacklab_model::Transport;
use std::fmt;
use std::str::FromStr;

/// Rounds of a flow. In each, IPv4 is counted first, then IPv6.
pub(super) const ROUNDS: usize = 5;
/// Messages of a family in a round, a power of ten with [`ROUNDS`]: figures per message have four decimals at most.
pub(super) const MESSAGES: u64 = 2_000;
/// Largest message, bytes: one thread sends and receives, so a message has to fit the sockets' buffers.
const LARGEST: u32 = 16_384;
/// Most flows in a plan, which is an argument of the guest's kernel.
const MOST_FLOWS: usize = 32;

/// One transport and size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExactFlow {
    /// The transport protocol.
    pub transport: Transport,
    /// Payload bytes of a message.
    pub size: u32,
}

/// Flows, one after the other. As text: `udp/128,tcp/128`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExactPlan {
    pub(super) flows: Vec<ExactFlow>,
}

impl ExactPlan {
    /// All sizes of all transports.
    ///
    /// # Errors
    /// A size out of range, or too many flows.
    pub fn new(transports: &[Transport], sizes: &[u32]) -> Result<Self, String> {
        let flows: Vec<ExactFlow> = transports
            .iter()
            .flat_map(|transport| sizes.iter().map(|size| ExactFlow { transport: *transport, size: *size }))
            .collect();
        if let Some(flow) = flows.iter().find(|flow| !(1..=LARGEST).contains(&flow.size)) {
            return Err(format!(
                "--size {} cannot be counted: messages have 1 to {LARGEST} bytes, because one thread sends and receives",
                flow.size
            ));
        }
        if flows.len() > MOST_FLOWS {
            return Err(format!(
                "{} sizes cannot be counted at once: name at most {}",
                sizes.len(),
                MOST_FLOWS / transports.len()
            ));
        }
        Ok(ExactPlan { flows })
    }

    /// How many phases the plugin counts.
    pub(super) fn phases(&self) -> usize {
        self.flows.len() * ROUNDS * 2
    }
}

impl fmt::Display for ExactPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flows = self.flows.iter().map(|flow| format!("{}/{}", flow.transport, flow.size));
        f.write_str(&flows.collect::<Vec<_>>().join(","))
    }
}

impl FromStr for ExactPlan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let flow = |text: &str| {
            let (transport, size) = text.split_once('/')?;
            Some(ExactFlow { transport: transport.parse().ok()?, size: size.parse().ok()? })
        };
        let flows: Option<Vec<ExactFlow>> = text.split(',').map(flow).collect();
        flows
            .map(|flows| ExactPlan { flows })
            .ok_or_else(|| format!("`{text}` is not a plan such as udp/128,tcp/128"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_reads_back_as_written() {
        let plan = ExactPlan::new(&[Transport::Udp, Transport::Tcp], &[128, 1408]).unwrap();
        assert_eq!(plan.to_string(), "udp/128,udp/1408,tcp/128,tcp/1408");
        assert_eq!(plan.to_string().parse(), Ok(plan.clone()));
        assert_eq!(plan.phases(), 40);
        for wrong in ["", "udp", "udp/", "sctp/1", "udp/128,"] {
            assert!(wrong.parse::<ExactPlan>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn refuses_sizes_that_one_thread_cannot_send() {
        for size in [0, 16_385] {
            let error = ExactPlan::new(&[Transport::Udp], &[size]).unwrap_err();
            assert!(error.contains("1 to 16384 bytes"), "{error}");
        }
        let many: Vec<u32> = (1..=33).collect();
        assert!(ExactPlan::new(&[Transport::Udp], &many).unwrap_err().contains("at most 32"));
    }
}
