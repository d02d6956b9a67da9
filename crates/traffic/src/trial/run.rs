//! Runs one trial on two agents and validates it.

use crate::protocol::client::{AgentClient, AgentError};
use crate::results;
use crate::results::validate;
use crate::trial::execute::execute;
use crate::trial::path::Path;
use crate::trial::transfers;
use stacklab_model::{Direction, Drops, RunRecord, RunStatus, Trial, TrialSpec, Warning};
use std::collections::BTreeMap;
use std::time::{Instant, SystemTime};

/// Runs one trial between two agents. In reverse, the second one sends. Both ways at once, the run's figures are those
/// of the stream from the first agent to the second, but for the metrics that say otherwise; its sides are forward
/// sender and receiver, then reverse sender and receiver.
///
/// # Errors
/// When an agent is gone or silent, or the user interrupts. A trial that an agent could not do is a run all the
/// same: invalid, with the agent's reason.
pub fn run_trial(
    sender: &mut AgentClient,
    receiver: &mut AgentClient,
    path: &Path,
    trial: &Trial,
    spec: TrialSpec,
    direction: Direction,
) -> Result<RunRecord, AgentError> {
    let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let clock = Instant::now();
    let transfers = transfers::of(path, &spec, direction);
    let seen = execute([&mut *sender, &mut *receiver], &transfers);
    let mut run = RunRecord {
        trial: trial.clone(),
        started_unix_ns: started.as_nanos() as u64,
        wall_ns: clock.elapsed().as_nanos() as u64,
        status: RunStatus::Valid,
        values: BTreeMap::new(),
        drops: Drops::default(),
        host_reports: Vec::new(),
        warnings: Vec::new(),
        spec,
    };
    match seen {
        Ok(host_reports) => {
            let (main, [sent, received]) = (&transfers[0], &host_reports[0]);
            run.status = validate::validate_all(&transfers, &host_reports);
            run.values = results::values(&main.spec, &main.path, sent, received);
            run.values.extend(transfers::secondary_values(&transfers, &host_reports));
            run.drops = results::drops(&main.spec, sent, received);
            for (transfer, [sent, received]) in transfers.iter().zip(&host_reports) {
                let warnings =
                    results::warnings(&transfer.spec, transfer.path.rate, transfer.path.mtu, sent, received);
                let said = |warning: Warning| Warning {
                    text: format!("{}{}", transfer.prefix(), warning.text),
                    ..warning
                };
                run.warnings.extend(warnings.into_iter().map(said));
            }
            run.warnings.extend(transfers::overlap_warning(
                &transfers,
                &host_reports,
                run.spec.clock_offset_ns,
            ));
            run.warnings.extend(transfers::load_warning(&transfers, &host_reports, run.spec.clock_offset_ns));
            // A record has room for the two directions of what is measured, and none for what flowed beside.
            let kept = transfers
                .iter()
                .zip(host_reports)
                .filter(|(transfer, _)| transfer.role != transfers::TransferRole::Load);
            run.host_reports = kept.flat_map(|(_, host_reports)| host_reports).collect();
        }
        Err(AgentError::Failed { host, reason }) => {
            run.status = RunStatus::Invalid(vec![format!("{host} {reason}")])
        }
        Err(error) => return Err(error),
    }
    if !run.is_valid() {
        // A host that is gone takes the link with it and spoils what the other one sees: that is no run, and can be
        // done again.
        sender.hello()?;
        receiver.hello()?;
    }
    Ok(run)
}
