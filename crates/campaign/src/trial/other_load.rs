//! Other load on this machine during a trial: a run that it may have disturbed says so.

use stacklab_model::{Slice, Warning};
use stacklab_traffic::host::other_load::OtherLoad;

/// Maximum steal, as a share of the time of all CPUs.
const MOST_STOLEN: f64 = 0.05;
/// What other processes may have together, as a share of one processor.
const MOST_OF_OTHERS: f64 = 0.1;
const NAMED: usize = 3;

/// The warning of a trial during which other load used much of the CPUs, with its parts. `held_up` are slices of an
/// interleaved trial that waited for a processor, and all of which that is known.
pub(super) fn warning(load: &OtherLoad, held_up: [usize; 2]) -> Option<Warning> {
    let others: f64 = load.processes.iter().map(|process| process.share).sum();
    if load.stolen <= MOST_STOLEN && others <= MOST_OF_OTHERS {
        return None;
    }
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    let mut what = Vec::new();
    if load.stolen > 0.0 {
        what.push(format!("steal {}", percent(load.stolen)));
    }
    let named = load.processes.iter().filter(|process| process.share >= MOST_OF_OTHERS / 2.0).take(NAMED);
    what.extend(named.map(|process| format!("{} used {} of one", process.name, percent(process.share))));
    let mut text = format!("other load used {} of the CPUs ({})", percent(load.taken()), what.join(", "));
    let [some, all] = held_up;
    if some > 0 {
        let most = percent(Slice::MOST_WAITED);
        text += &format!("; {some} of {all} slices waited for a processor for over {most}");
    }
    Some(Warning {
        code: "other_load".to_owned(),
        text,
        advice: "stop other load, or measure on a dedicated machine".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_traffic::host::other_load::OtherProcess;

    fn load(stolen: f64, processes: &[(&str, f64)]) -> OtherLoad {
        let of = |(name, share): &(&str, f64)| OtherProcess {
            pid: 7,
            name: (*name).to_owned(),
            share: *share,
            ran_before: true,
        };
        OtherLoad {
            seconds: 1.0,
            processors: 2,
            busy: 0.5,
            stolen,
            processes: processes.iter().map(of).collect(),
        }
    }

    #[test]
    fn what_had_the_processors_is_named_where_it_was_much() {
        assert_eq!(warning(&load(0.05, &[("cron", 0.04), ("sshd", 0.05)]), [9, 9]), None);
        let said = |load| warning(&load, [0, 9]).unwrap().text;
        assert_eq!(
            said(load(0.12, &[("cc1", 0.5), ("sshd", 0.01)])),
            "other load used 38 % of the CPUs (steal 12 %, cc1 used 50 % of one)"
        );
        assert_eq!(
            said(load(0.0, &[("cc1", 0.2)])),
            "other load used 10 % of the CPUs (cc1 used 20 % of one)"
        );
        assert_eq!(
            warning(&load(0.0, &[("cc1", 0.2)]), [2, 80]).unwrap().text,
            "other load used 10 % of the CPUs (cc1 used 20 % of one); 2 of 80 slices waited for a processor for over 10 %"
        );
    }
}
