//! What is alike in all trials that programs of others drive: the sockets are theirs, and the kernels of the hosts say
//! what they carried.

use crate::CampaignError;
use stacklab_model::{
    Counters, Endpoint, Ends, Family, ToolReport, Transport, printable_lines, printable_text,
};
use stacklab_trial::Path;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// How long packets that are under way at the end are waited for.
pub(crate) const UNDER_WAY: Duration = Duration::from_millis(20);
/// How much of what a program printed last an error quotes, characters.
const QUOTED_CHARS: usize = 200;

/// Why a run has no figures.
pub(crate) enum RunFailure {
    /// A program did not do what it should.
    Badly(String),
    /// The system refused something, or the user has interrupted.
    Failed(CampaignError),
}

impl<E: Into<CampaignError>> From<E> for RunFailure {
    fn from(error: E) -> Self {
        RunFailure::Failed(error.into())
    }
}

impl RunFailure {
    /// The reason for which the run is invalid; an error if nothing was run at all.
    pub(crate) fn into_reason(self) -> Result<String, CampaignError> {
        match self {
            RunFailure::Badly(reason) => Ok(reason),
            RunFailure::Failed(error) => Err(error),
        }
    }
}

/// Names the step that the system refused.
pub(crate) fn explain(attempted: &'static str) -> impl Fn(io::Error) -> RunFailure {
    move |reason| RunFailure::Failed(CampaignError::System { attempted, reason })
}

/// What became of a program, with the end of what it printed.
pub(crate) fn quote_end(what: &str, printed: &str) -> String {
    let words = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    let skipped = words.chars().count().saturating_sub(QUOTED_CHARS);
    let last: String = words.chars().skip(skipped).collect();
    let said = if last.is_empty() { "it printed nothing".to_owned() } else { format!("it printed: {last}") };
    printable_text(&format!("{what}; {said}"))
}

/// How much counters have grown.
pub(crate) fn increase(before: &Counters, after: &Counters) -> Counters {
    let by = after.0.iter().filter_map(|(name, after)| {
        let by = after.checked_sub(before.get(name)).filter(|by| *by > 0)?;
        Some((name.clone(), by))
    });
    Counters(by.collect())
}

/// The ends of a path as far as they are known: the addresses, and the receiver's port.
pub(crate) fn endpoints(path: &Path, transport: Transport, port: u16) -> Ends<Endpoint> {
    let [own_mtu, other_mtu] = path.own_mtus();
    let [here, there] = [path.sender.ip(), path.receiver.ip()];
    Ends {
        sender: endpoint(transport, (here, 0).into(), (path.destination(), port).into(), own_mtu),
        receiver: endpoint(transport, (there, port).into(), (path.source(), 0).into(), other_mtu),
    }
}

fn endpoint(transport: Transport, local: SocketAddr, peer: SocketAddr, interface_mtu: u32) -> Endpoint {
    Endpoint {
        family: Family::of(local.ip()),
        transport,
        local,
        peer,
        interface: stacklab_testbed::INTERFACE.to_owned(),
        interface_mtu,
        path_mtu: None,
        offloads: Default::default(),
        congestion_control: None,
        options: Default::default(),
    }
}

/// What is kept of a program's output: its start, without control characters.
pub(crate) fn shorten_output(output: &str) -> String {
    let text = printable_lines(output);
    let mut most = text.len().min(ToolReport::MAX_OUTPUT_BYTES);
    while !text.is_char_boundary(most) {
        most -= 1;
    }
    text[..most].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_an_output_is_bounded_and_printable() {
        assert_eq!(shorten_output("a\u{1b}[2J\nb"), "a\u{fffd}[2J\nb");
        let long = shorten_output(&"\u{e9}".repeat(ToolReport::MAX_OUTPUT_BYTES));
        assert_eq!(long.len(), ToolReport::MAX_OUTPUT_BYTES);
        let odd = shorten_output(&format!("a{}", "\u{e9}".repeat(ToolReport::MAX_OUTPUT_BYTES)));
        assert_eq!(odd.len(), ToolReport::MAX_OUTPUT_BYTES - 1);
    }
}
