//! Devices that are rules in whole numbers: the trials that the program of RFC 9971's authors (MLRsearch 1.2.1) asked
//! of each, the class of every load, and the bounds that it found.

mod support;

use serde_json::Value;
use stacklab_search::class::{Class, Criterion, Trial, classify, conditional_loss};
use stacklab_search::controller::Search;
use std::path::{Path, PathBuf};
use std::time::Duration;
use support::{compare_result, goal};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors")
}

fn read_json(name: &str) -> Value {
    let text = std::fs::read_to_string(folder().join(format!("{name}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The rows of a table, each by its header's names.
fn read_rows(file: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(folder().join(file)).unwrap();
    text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

fn names() -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        names.extend(file.strip_suffix(".json").map(str::to_owned));
    }
    names.sort();
    names
}

struct Device(Value);

struct Frames {
    intended: u64,
    offered: u64,
    lost: u64,
}

impl Device {
    fn number(&self, key: &str, otherwise: f64) -> f64 {
        self.0[key].as_f64().unwrap_or(otherwise)
    }

    fn carry(&self, load: f64, seconds: f64, trial: u64) -> Frames {
        let intended = (load * seconds) as u64;
        let offered = intended.min((self.number("generator", 1e12) * seconds) as u64);
        let carried = (self.number("capacity", 0.0) * seconds) as u64 + self.number("queue", 0.0) as u64;
        let mut lost = offered.saturating_sub(carried);
        for pair in self.0["ppm"].as_array().unwrap_or(&vec![]).windows(2) {
            let [from, least, to, most] =
                [&pair[0][0], &pair[0][1], &pair[1][0], &pair[1][1]].map(|value| value.as_f64().unwrap());
            if from <= load && load < to {
                let share = least + (most - least) * (load - from) / (to - from);
                lost = lost.max((offered as f64 * share / 1e6) as u64);
            }
        }
        for band in self.0["bands"].as_array().unwrap_or(&vec![]) {
            if band[0].as_f64().unwrap() <= load && load < band[1].as_f64().unwrap() {
                lost += band[2].as_u64().unwrap();
            }
        }
        let every = self.0["burst"][0].as_u64().unwrap_or(0);
        if every > 0 && trial.is_multiple_of(every) {
            lost += self.0["burst"][1].as_u64().unwrap();
        }
        Frames { intended, offered, lost: lost.min(offered) }
    }
}

#[test]
fn asks_the_same_trials_and_finds_the_same_bounds() {
    let rows = read_rows("trials.csv");
    let names = names();
    assert_eq!(names.len(), 12);
    for name in names {
        let vector = read_json(&name);
        let device = Device(vector["device"].clone());
        let goals =
            vector["results"].as_array().unwrap().iter().map(|result| goal(&result["goal"])).collect();
        let loads = ["min_load", "max_load"].map(|key| vector[key].as_f64().unwrap());
        let mut search = Search::new(goals, loads[0], loads[1]).unwrap();
        let expected: Vec<&Vec<String>> = rows.iter().filter(|row| row[0] == name).collect();
        assert!(!expected.is_empty(), "{name}");
        for (number, row) in expected.iter().enumerate() {
            let request = search.next_trial().unwrap_or_else(|| panic!("{name}: only {number} trials"));
            let seconds = request.duration.as_secs_f64();
            assert_eq!(request.step, row[2].parse::<i64>().unwrap(), "{name}: trial {}", number + 1);
            assert!((seconds - row[4].parse::<f64>().unwrap()).abs() < 1e-6, "{name}: trial {}", number + 1);
            let frames = device.carry(request.load, seconds, number as u64 + 1);
            assert_eq!(
                [frames.intended, frames.offered, frames.lost].map(|count| count.to_string()),
                row[5..8]
            );
            search.add(frames.intended, frames.offered, frames.lost);
        }
        assert_eq!(search.next_trial(), None, "{name}: more trials");
        for (found, result) in search.results().iter().zip(vector["results"].as_array().unwrap()) {
            compare_result(&name, found, [&result["lower"]["load"], &result["upper"]["load"]], result);
        }
    }
}

/// Trials with these seconds of each kind: full and short, low and high.
fn trials_of(row: &[String], criterion: &Criterion) -> Vec<Trial> {
    let mut trials = Vec::new();
    for (seconds, is_short, lost) in
        [(&row[0], false, 0), (&row[1], false, 1), (&row[2], true, 0), (&row[3], true, 1)]
    {
        let effective = Duration::from_secs_f64(seconds.parse().unwrap());
        if !effective.is_zero() {
            let intended = if is_short { Duration::from_nanos(1) } else { criterion.full_trial };
            trials.push(Trial { intended, effective, frames: 100, lost: 100 * lost });
        }
    }
    trials
}

fn class_name(class: Class) -> &'static str {
    match class {
        Class::Lower => "lower",
        Class::Upper => "upper",
        Class::Undecided => "undecided",
    }
}

#[test]
fn classes_are_those_of_the_reference() {
    let rows = read_rows("classes.csv");
    assert!(rows.len() > 100);
    for row in rows {
        let vector = read_json(&row[0]);
        let goal = goal(&vector["results"][row[1].parse::<usize>().unwrap()]["goal"]);
        let criterion = Criterion {
            loss_ratio: goal.loss_ratio,
            exceed_ratio: goal.exceed_ratio,
            full_trial: goal.final_trial,
            duration_sum: goal.duration_sum,
        };
        assert_eq!(class_name(classify(&trials_of(&row[4..8], &criterion), &criterion)), row[8], "{row:?}");
    }
}

/// Appendix C of RFC 9971. Its table has another class in points 5 and 6 of goal 4, which its own rule contradicts.
#[test]
fn classes_of_the_example_in_the_rfc() {
    let goals = [(0, 0, 60, 60), (0, 500_000, 60, 120), (5000, 500_000, 1, 120), (5000, 200_000, 60, 60)];
    for row in read_rows("rfc9971-example.csv") {
        let (loss_ratio, exceed_ratio, full, sum) = goals[row[1].parse::<usize>().unwrap() - 1];
        let criterion = Criterion {
            loss_ratio,
            exceed_ratio,
            full_trial: Duration::from_secs(full),
            duration_sum: Duration::from_secs(sum),
        };
        let trials = trials_of(&row[2..6], &criterion);
        assert_eq!(class_name(classify(&trials, &criterion)), row[6], "{row:?}");
        let is_lower = row[6] == "lower";
        assert!(!is_lower || conditional_loss(&trials, &criterion) <= f64::from(loss_ratio) / 1e6, "{row:?}");
    }
}
