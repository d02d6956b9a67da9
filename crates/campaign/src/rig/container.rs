//! An end that is a container: what its host has carried to it, by its own count, proves which path a run took.

use crate::trial::Evidence;
use stacklab_model::{HostReport, Mechanism, Publisher, Role, add_up};
use stacklab_testbed::Routed;

/// Makes runs invalid of which the host has carried less than the container got. `before` is what it had carried.
pub(super) fn check_way(own: &mut Routed, mechanism: Mechanism, before: u64, evidence: &mut [Evidence]) {
    let reports = evidence.iter().flat_map(|arm| arm.collected.reports.iter().flatten().flatten());
    let received = count_arrivals(reports);
    let reason = match own.lost_companion() {
        Some(lost) => Some(lost),
        None => match own.published_since(before, received) {
            Ok(None) => None,
            Ok(Some(carried)) => find_other_path(mechanism, received, carried),
            Err(error) => Some(error.to_string()),
        },
    };
    if let Some(reason) = reason {
        evidence.iter_mut().for_each(|arm| arm.collected.reports = Err(reason.clone()));
    }
}

/// Records as off the segmentation offload of a device that is limited to single segments: the driver keeps saying that
/// it is on, and TCP never uses it.
pub(super) fn correct_offloads(own: &Routed, evidence: &mut [Evidence]) {
    let Some(addresses) = own.single_segment_addresses() else { return };
    for report in evidence.iter_mut().flat_map(|arm| arm.collected.reports.iter_mut().flatten().flatten()) {
        if addresses.contains(&report.endpoint.local.ip()) {
            report.endpoint.offloads.tso = Some(false);
        }
    }
}

/// The bytes that receivers counted in their windows, and a byte for each connection.
fn count_arrivals<'a>(reports: impl Iterator<Item = &'a HostReport>) -> u64 {
    let receivers = reports.filter(|report| report.role == Role::Receiver);
    add_up(receivers.map(|report| report.received.all_bytes().max(report.received.measured)))
}

/// Why the container must have been reached on another path, if it was.
fn find_other_path(mechanism: Mechanism, received: u64, carried: u64) -> Option<String> {
    let is_container =
        mechanism.begins_at_sender() && !mechanism.publisher().is_some_and(Publisher::is_of_sender);
    let [receiver, host] = if is_container { ["container", "its"] } else { ["receiver", "the container's"] };
    (carried < received).then(|| {
        format!(
            "the {receiver} got {received} bytes, and {mechanism} on {host} host has carried {carried}: they took \
             another path"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::fixtures::make_receiver_report;

    #[test]
    fn runs_past_the_host_are_invalid() {
        let mut report = make_receiver_report(0, 0.0);
        (report.received.bytes, report.received.measured) = (5000, 10);
        let received = count_arrivals([&report].into_iter());
        assert_eq!(received, 5000);
        assert_eq!(find_other_path(Mechanism::DockerProxy, received, 5000), None);
        let reason = find_other_path(Mechanism::DockerProxy, received, 4999).unwrap();
        assert!(reason.starts_with("the container got 5000 bytes, and docker-proxy on its host"), "{reason}");
        report.received.bytes = 0;
        assert_eq!(count_arrivals([&report].into_iter()), 10, "connections without a message");
    }
}
