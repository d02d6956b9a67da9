//! Why arms differ, in a sentence of the answer.

use stacklab_model::{Explanation, Factor, Health, StageCosts, Transport};

/// Explanations that the answer names.
const NAMED: usize = 3;

/// `Why, stream udp segment 128 B: mostly route lookup, +74 of +122 ns a message.` of all explanations of two levels
/// of a factor, and of a transport if it is not the factor. `None` without any.
pub(crate) fn why(
    all: &[Explanation],
    factor: Factor,
    arms: [&str; 2],
    transport: Option<Transport>,
) -> Option<String> {
    let is_meant = |explanation: &&Explanation| {
        explanation.factor == factor
            && explanation.arms() == arms
            && transport.is_none_or(|transport| explanation.baseline.transport == transport)
    };
    let mut said: Vec<String> = all
        .iter()
        .filter(is_meant)
        .filter_map(|explanation| Some(format!("{}: {}", explanation.context(), most(explanation.costs()?))))
        .collect();
    let more = said.len().saturating_sub(NAMED);
    said.truncate(NAMED);
    let more = if more > 0 { format!("; {more} more below") } else { String::new() };
    (!said.is_empty()).then(|| format!("Why, {}{more}.", said.join("; ")))
}

/// The stage with the largest part of a difference: `mostly route lookup, +74 of +122 ns a message`.
fn most(costs: &StageCosts) -> String {
    let busy = &costs.busy;
    if costs.health.lock_ratio > Health::MOST_LOCKED {
        return "not told, as samples follow the packet loop".to_owned();
    }
    if busy.difference_ns.abs() <= busy.half_width_ns() {
        return format!(
            "no difference of CPU time beyond chance, {:+.0} ± {:.0} ns a message",
            busy.difference_ns,
            busy.half_width_ns()
        );
    }
    let way = busy.difference_ns.signum();
    let largest = costs.stages.iter().find(|stage| stage.differs() && stage.difference_ns.signum() == way);
    let Some(stage) = largest else {
        return format!("no stage by more than chance, {:+.0} ns a message in all", busy.difference_ns);
    };
    let is_most = stage.difference_ns.abs() >= busy.difference_ns.abs() / 2.0;
    let how = if is_most { "mostly" } else { "first of all" };
    format!("{how} {}, {:+.0} of {:+.0} ns a message", stage.name, stage.difference_ns, busy.difference_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixtures::{costs, explanations};
    use stacklab_model::Why;

    fn said(change: impl Fn(&mut StageCosts)) -> String {
        let mut costs = costs();
        change(&mut costs);
        most(&costs)
    }

    #[test]
    fn the_stage_with_the_largest_part_is_named() {
        assert_eq!(said(|_| ()), "mostly route lookup, +74 of +122 ns a message");
        assert_eq!(
            said(|costs| costs.busy.difference_ns = 200.0),
            "first of all route lookup, +74 of +200 ns a message"
        );
        // A stage that goes the other way explains nothing.
        assert_eq!(
            said(|costs| costs.stages[0].difference_ns = -74.0),
            "first of all ip output, +40 of +122 ns a message"
        );
        assert_eq!(
            said(|costs| costs.stages.clear()),
            "no stage by more than chance, +122 ns a message in all"
        );
        assert_eq!(
            said(|costs| costs.busy.error_ns = 100.0),
            "no difference of CPU time beyond chance, +122 ± 196 ns a message"
        );
        assert!(said(|costs| costs.health.lock_ratio = 1.2).starts_with("not told"));
    }

    #[test]
    fn explanations_of_other_arms_or_without_costs_say_nothing() {
        let mut all = explanations();
        let of = |all: &[Explanation], arms, transport| why(all, Factor::Family, arms, Some(transport));
        let arms = ["ipv4", "ipv6"];
        assert_eq!(
            of(&all, arms, Transport::Udp).unwrap(),
            "Why, stream udp segment 128 B: mostly route lookup, +74 of +122 ns a message."
        );
        assert_eq!(of(&all, arms, Transport::Tcp), None);
        assert_eq!(of(&all, ["ipv6", "ipv4"], Transport::Udp), None);
        all[0].why = Why::Unknown("no time".into());
        assert_eq!(of(&all, arms, Transport::Udp), None);
        let many = vec![explanations().swap_remove(0); 5];
        assert!(of(&many, arms, Transport::Udp).unwrap().ends_with("; 2 more below."));
    }
}
