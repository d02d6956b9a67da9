//! Queries to the services of a testbed during a trial.

use crate::trial::evidence::ReportSource;
use stacklab_model::{Service, Warning};
use stacklab_testbed::services::Asked;
use stacklab_trial::Figures;
use std::collections::BTreeMap;

/// Adds the counts to the counters of the querying host, and a warning for each service with unanswered queries.
pub(super) fn counted(
    mut made: Figures,
    sources: &[ReportSource],
    asked: &BTreeMap<Service, Asked>,
) -> Figures {
    // The sender of the testbed sends the queries.
    let asks = sources.iter().position(|source| source.host == 0);
    if let Some(report) = asks.and_then(|place| made.host_reports.get_mut(place)) {
        for (service, Asked { asked, answered }) in asked {
            report.counters.0.insert(format!("services.{service}.asked"), *asked);
            report.counters.0.insert(format!("services.{service}.answered"), *answered);
        }
    }
    made.warnings.extend(asked.iter().filter_map(|(service, count)| warning(*service, *count)));
    made
}

/// A warning if not all queries were answered.
fn warning(service: Service, Asked { asked, answered }: Asked) -> Option<Warning> {
    (answered < asked).then(|| Warning {
        code: "services".to_owned(),
        text: format!("{service} answered {answered} of {asked} queries"),
        advice: "a full link loses queries too; if none is answered, the receiver did not serve".to_owned(),
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
