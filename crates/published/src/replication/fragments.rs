//! Messages larger than a packet: the counted fragments, and the loss of throughput that the header model predicts.

use serde::Serialize;
use stacklab_model::{Cell, HostReport, Mechanism, Metric, Role, RunRecord, Transport, WirePath, WireSize};
use stacklab_store::{Record, StoreError};
use stacklab_study::Study;

/// A cell whose messages do not fit a packet, and the largest size of the same cell that fits.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct FragmentedCell {
    pub cell: String,
    /// The largest size of the same cell that fits.
    pub fits: u32,
    /// Messages that left the sender, over all valid runs.
    pub messages: u64,
    /// Fragments that the sender made from them.
    pub fragments: u64,
    pub arrived: u64,
    /// Messages that the receiver's kernel reassembled from fragments.
    pub reassembled: u64,
    /// Packets per message by the header model.
    pub model_packets: u32,
    /// Throughput of the fragmented size relative to the size that fits, by the header model.
    pub model_ratio: f64,
    pub ratio: f64,
}

impl FragmentedCell {
    pub(crate) fn text(&self) -> String {
        let FragmentedCell { cell, fits, messages, fragments, arrived, reassembled, model_packets, .. } =
            self;
        format!(
            "{cell}: {messages} messages left in {fragments} fragments, {:.2} for each ({model_packets} by the header \
             model); {reassembled} were put together of {arrived} that arrived. Headers alone make {:+.2} % of the throughput at {fits} \
             B; measured is {:+.2} %",
            *fragments as f64 / *messages as f64,
            100.0 * (self.model_ratio - 1.0),
            100.0 * (self.ratio - 1.0),
        )
    }
}

/// Every UDP cell whose messages are fragmented, if a smaller size of the same cell is not.
pub(super) fn cuts(
    study: &Study,
    runs: &[RunRecord],
    record: &Record,
) -> Result<Vec<FragmentedCell>, StoreError> {
    let mut cuts = Vec::new();
    for cell in &study.cells {
        let Some((fits, [cut_size, size])) = pair(cell, study) else { continue };
        let (mut messages, mut fragments, mut arrived, mut reassembled) = (0, 0, 0, 0);
        for run in valid(runs, cell) {
            let host_reports = record.host_reports(&run.trial)?;
            let side = |role| host_reports.iter().find(|side| side.role == role);
            let (Some(sent), Some(received)) = (side(Role::Sender), side(Role::Receiver)) else { continue };
            let of = |side: &HostReport, name: &str| {
                side.counters.get(&format!("ip.{name}")) + side.counters.get(&format!("ip6.{name}"))
            };
            for (sum, of_run) in [
                (&mut messages, sent.sent.warmup + sent.sent.measured + sent.sent.markers),
                (&mut fragments, of(sent, "FragCreates")),
                (&mut arrived, received.received.warmup + received.received.measured),
                (&mut reassembled, of(received, "ReasmOKs")),
            ] {
                *sum = u64::saturating_add(*sum, of_run);
            }
        }
        let (Some(throughput), Some(fitting)) = (mean(runs, cell), mean(runs, fits)) else { continue };
        let limit =
            |cell: &Cell, size: WireSize| f64::from(cell.payload_bytes()) / f64::from(size.wire_bytes);
        cuts.push(FragmentedCell {
            cell: cell.to_string(),
            fits: fits.size,
            messages,
            fragments,
            arrived,
            reassembled,
            model_packets: cut_size.packets,
            model_ratio: limit(cell, cut_size) / limit(fits, size),
            ratio: throughput / fitting,
        });
    }
    Ok(cuts)
}

/// The largest cell of the same kind that fits a packet, if this one does not; and the on-wire sizes of both, this
/// one first.
fn pair<'a>(cell: &Cell, study: &'a Study) -> Option<(&'a Cell, [WireSize; 2])> {
    let size = |cell: &Cell| {
        let path = WirePath::plain(cell.family, cell.transport, study.link_config.mtu_of(cell));
        WirePath { mechanism: Mechanism::of(cell), ..path }.wire_size(cell.payload_bytes())
    };
    let own = size(cell).filter(|size| size.packets > 1 && cell.transport == Transport::Udp)?;
    let alike = |other: &&Cell| Cell { size: cell.size, ..(*other).clone() } == *cell;
    let fitting =
        study.cells.iter().filter(alike).filter(|other| size(other).is_some_and(|s| s.packets == 1));
    let fits = fitting.max_by_key(|other| other.size)?;
    Some((fits, [own, size(fits)?]))
}

fn valid<'a>(runs: &'a [RunRecord], cell: &'a Cell) -> impl Iterator<Item = &'a RunRecord> {
    runs.iter().filter(move |run| run.is_valid() && run.trial.cell == *cell)
}

fn mean(runs: &[RunRecord], cell: &Cell) -> Option<f64> {
    let of = |run: &RunRecord| run.values.get(&Metric::Throughput)?.measured();
    let figures: Vec<f64> = valid(runs, cell).filter_map(of).collect();
    (!figures.is_empty()).then(|| figures.iter().sum::<f64>() / figures.len() as f64)
}
