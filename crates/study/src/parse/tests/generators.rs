//! `factors.generator`.

use crate::parse::tests::{assert_mistakes, study, with};
use crate::plan::Plan;
use stacklab_model::{Factor, Generator, Probe};

/// The example with these generators, in a form that all of them can do.
fn of(generators: &str) -> String {
    with("size_of = [\"payload\"]", &format!("size_of = [\"write\"]\ngenerator = [{generators}]"))
        .replace("200ms", "2s")
}

fn add_levels(generator: &str, levels: &str) -> String {
    of(generator).replace("size =", &format!("{levels}\nsize ="))
}

#[test]
fn generators_are_a_factor_whose_arms_are_separate() {
    let all: Vec<String> = Generator::NAMES.iter().map(|name| format!("\"{name}\"")).collect();
    let read = study(&of(&all.join(", ")));
    assert_eq!(read.cells.len(), 2 * 2 * 2 * Generator::ALL.len());
    assert!(read.schedule.is_alone());
    assert_eq!(Generator::of(&read.cells[1]), Generator::Iperf3);
    assert_eq!(read.cells[1].level(Factor::Generator), "iperf3");
    assert!(!study(&of("\"stacklab\"")).schedule.is_alone(), "its own interleaves as without the factor");
}

#[test]
fn two_builds_of_a_generator_are_compared() {
    let builds = of("\"iperf3\"").replace("size =", "programs = [\"base/src\", \"candidate/src\"]\nsize =");
    let compared = builds
        .replace("factor = \"family\"", "factor = \"programs\"")
        .replace("baseline = \"ipv4\"", "baseline = \"base/src\"")
        .replace("candidate = \"ipv6\"", "candidate = \"candidate/src\"");
    let study = study(&compared);
    assert_eq!(study.cells.len(), 2 * 2 * 2 * 2);
    let folders: Vec<_> = study.cells[..2].iter().map(|cell| cell.settings.programs.as_deref()).collect();
    assert_eq!(folders, [Some("base/src"), Some("candidate/src")]);
    assert_eq!(study.comparisons[0].factor, Factor::Programs);
}

#[test]
fn a_generator_has_trials_of_the_probes_that_it_knows() {
    let echo = "[probe.echo]\nmetrics = [\"rtt\"]\nlength = { time = \"1s\" }\n[blocks]";
    let study = study(&of("\"stacklab\", \"netperf\", \"ditg\"").replace("[blocks]", echo));
    let block = Plan::new(&study, 1).block(0);
    for (generator, probe, count) in [
        (Generator::Stacklab, Probe::Echo, 8),
        (Generator::Netperf, Probe::Echo, 8),
        (Generator::Ditg, Probe::Echo, 0),
        (Generator::Ditg, Probe::Stream, 8),
    ] {
        let trials =
            block.iter().filter(|trial| Generator::of(&trial.cell) == generator && trial.probe == probe);
        assert_eq!(trials.count(), count, "{generator} {probe}");
    }
}

#[test]
fn what_a_generator_cannot_do_is_said_at_its_place() {
    assert_mistakes(&[
        (of("\"iperf4\""), &["there is no generator `iperf4`", "did you mean `iperf3`"]),
        (
            of("\"iperf3\"").replace("\"write\"", "\"payload\""),
            &["generator `iperf3` cannot keep each message in a separate segment", "size_of = [\"write\"]"],
        ),
        (
            add_levels("\"ditg\"", "os = [\"gvisor\"]"),
            &["generator `ditg` cannot run in gvisor", "not in that system"],
        ),
        (
            add_levels("\"iperf3\", \"stacklab\"", "programs = [\"base\"]"),
            &["generator `stacklab` has no other programs", "factors.generator = [\"iperf3\"]"],
        ),
        (
            add_levels("\"ditg\"", "flows = [2]"),
            &["`flows` cannot be set with generator `ditg`", "no such option"],
        ),
        (
            add_levels("\"iperf\"", "direction = [\"both\"]"),
            &["`direction` cannot be set with generator `iperf`"],
        ),
        (of("\"iperf3\"").replace("2s", "1500ms"), &["generator `iperf3` measures multiples of 1 s"]),
        (
            of("\"netperf\"").replace("time = \"2s\"", "packets = 1000"),
            &["generator `netperf` ends after a time"],
        ),
        (
            of("\"netperf\"").replace("length", "message_rate = 1000\nlength"),
            &["generator `netperf` has no rate"],
        ),
        (
            of("\"iperf\"").replace("min = 6", "schedule = \"interleaved\"\nmin = 6"),
            &["trials of generator iperf have no slices", "expected \"sequential\""],
        ),
        (
            of("\"iperf\"")
                .replace("\"throughput\"", "\"throughput\", \"generator_tx_error\"")
                .replace("factor = \"family\"", "factor = \"family\"\nmetrics = [\"generator_tx_error\"]"),
            &["nothing is compared by `generator_tx_error`"],
        ),
        (
            of("\"iperf\"").replace("probe.stream", "probe.echo").replace("\"throughput\"", "\"rtt\""),
            &["generator `iperf` measures by no probe of this study", "probe.stream or probe.paced"],
        ),
    ]);
}
