//! What the services of a testbed were asked while a trial ran, put into its run.

use stacklab_model::{Direction, Factor, RunRecord, Service, Warning};
use stacklab_testbed::services::Asked;
use std::collections::BTreeMap;

/// Adds the counts to the counters of the host that asks, and a warning for each service that did not answer all.
pub fn note(run: &mut RunRecord, asked: &BTreeMap<Service, Asked>) {
    // The sender of the testbed asks; in reverse it is the one that receives.
    let reverse = run.trial.cell.level(Factor::Direction) == Direction::Reverse.name();
    if let Some(side) = run.host_reports.get_mut(usize::from(reverse)) {
        for (service, Asked { asked, answered }) in asked {
            side.counters.0.insert(format!("services.{service}.asked"), *asked);
            side.counters.0.insert(format!("services.{service}.answered"), *answered);
        }
    }
    run.warnings.extend(asked.iter().filter_map(|(service, count)| warning(*service, *count)));
}

/// That not all was answered, where it was not.
fn warning(service: Service, Asked { asked, answered }: Asked) -> Option<Warning> {
    (answered < asked).then(|| Warning {
        code: "services".to_owned(),
        text: format!("{service} answered {answered} of {asked} queries"),
        advice: "a full link loses queries too; where none is answered, the receiver was no server"
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_is_silent_is_told_of() {
        let of = |asked, answered| warning(Service::Dns, Asked { asked, answered });
        assert_eq!(of(3, 3), None);
        assert_eq!(of(0, 0), None);
        let some = of(3, 1).unwrap();
        assert_eq!((some.code.as_str(), some.text.as_str()), ("services", "dns answered 1 of 3 queries"));
    }
}
