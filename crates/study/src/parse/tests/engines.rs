//! `factors.engine`.

use crate::parse::tests::{assert_mistakes, study, with};
use crate::plan::Plan;
use stacklab_model::{Engine, Factor, Probe};

/// The example with these engines, in a form that all of them can do.
fn of(engines: &str) -> String {
    with("framing = [\"segment\"]", &format!("framing = [\"message\"]\nengine = [{engines}]"))
        .replace("200ms", "2s")
}

#[test]
fn engines_are_a_factor_whose_arms_are_separate() {
    let all: Vec<String> = Engine::NAMES.iter().map(|name| format!("\"{name}\"")).collect();
    let read = study(&of(&all.join(", ")));
    assert_eq!(read.cells.len(), 2 * 2 * 2 * Engine::ALL.len());
    assert!(read.schedule.is_alone());
    assert_eq!(Engine::of(&read.cells[1]), Engine::Iperf3);
    assert_eq!(read.cells[1].level(Factor::Engine), "iperf3");
    assert!(!study(&of("\"stacklab\"")).schedule.is_alone(), "its own interleaves as without the factor");
}

#[test]
fn an_engine_has_trials_of_the_probes_that_it_knows() {
    let echo = "[probe.echo]\nmetrics = [\"rtt\"]\nlength = { time = \"1s\" }\n[blocks]";
    let study = study(&of("\"stacklab\", \"netperf\", \"ditg\"").replace("[blocks]", echo));
    let block = Plan::new(&study, 1).block(0);
    let of = |engine, probe| {
        block.iter().filter(|trial| Engine::of(&trial.cell) == engine && trial.probe == probe).count()
    };
    assert_eq!(
        [Engine::Stacklab, Engine::Netperf, Engine::Ditg].map(|engine| of(engine, Probe::Echo)),
        [8, 8, 0]
    );
    assert_eq!(of(Engine::Ditg, Probe::Stream), 8);
}

#[test]
fn what_an_engine_cannot_do_is_said_at_its_place() {
    let more = |engine: &str, levels: &str| of(engine).replace("size =", &format!("{levels}\nsize ="));
    assert_mistakes(&[
        (of("\"iperf4\""), &["there is no engine `iperf4`", "did you mean `iperf3`"]),
        (
            of("\"iperf3\"").replace("\"message\"", "\"segment\""),
            &["engine `iperf3` cannot keep each message in a separate segment", "framing = [\"message\"]"],
        ),
        (
            more("\"ditg\"", "os = [\"gvisor\"]"),
            &["engine `ditg` cannot run in gvisor", "not in that system"],
        ),
        (more("\"ditg\"", "flows = [2]"), &["`flows` cannot be set with engine `ditg`", "no such option"]),
        (more("\"iperf\"", "direction = [\"both\"]"), &["`direction` cannot be set with engine `iperf`"]),
        (of("\"iperf3\"").replace("2s", "1500ms"), &["engine `iperf3` measures multiples of 1 s"]),
        (
            of("\"netperf\"").replace("time = \"2s\"", "packets = 1000"),
            &["engine `netperf` ends after a time"],
        ),
        (
            of("\"netperf\"").replace("length", "message_rate = 1000\nlength"),
            &["engine `netperf` has no rate"],
        ),
        (
            of("\"iperf\"").replace("min = 6", "schedule = \"interleaved\"\nmin = 6"),
            &["trials of engine iperf have no slices", "expected \"sequential\""],
        ),
        (
            of("\"iperf\"")
                .replace("\"throughput\"", "\"throughput\", \"generator_tx_error\"")
                .replace("factor = \"family\"", "factor = \"family\"\nmetrics = [\"generator_tx_error\"]"),
            &["nothing is compared by `generator_tx_error`"],
        ),
        (
            of("\"iperf\"").replace("probe.stream", "probe.echo").replace("\"throughput\"", "\"rtt\""),
            &["engine `iperf` measures by no probe of this study", "probe.stream or probe.paced"],
        ),
    ]);
}
