//! `[scale.*]` and `--set`, merged over the file.

use crate::parse::tests::{QUICKSTART, STUDY, assert_mistakes, parse_with_settings, study};
use crate::study::Study;
use insta::assert_snapshot;
use stacklab_model::{Family, Length, Probe, Rate};

#[test]
fn a_scale_is_merged_over_the_study_key_by_key() {
    let text = format!(
        "{STUDY}[scale.paper]\nblocks.max = 40\nprobe.stream.length = {{ packets = 5 }}\nfactors.size = [64]\n"
    );
    let plain = parse_with_settings(&text, None, &[]).unwrap();
    assert_eq!(plain, study(STUDY));
    let paper = parse_with_settings(&text, Some("paper"), &[]).unwrap();
    assert_eq!((paper.rule.min, paper.rule.max), (6, 40));
    assert_eq!(paper.probe(Probe::Stream).unwrap().length, Length::Packets(5));
    assert_eq!(paper.cells.len(), 4);
    assert!(paper.cells.iter().all(|cell| cell.size == 64));
}

#[test]
fn a_scale_may_bring_a_probe_of_its_own() {
    let text = format!("{STUDY}[scale.quick.probe.echo]\nmetrics = [\"rtt\"]\nlength = {{ packets = 5 }}\n");
    assert_eq!(parse_with_settings(&text, Some("quick"), &[]).unwrap().probes.len(), 2);
    let broken = text.replace("metrics = [\"rtt\"]\n", "");
    assert_eq!(parse_with_settings(&broken, None, &[]).unwrap().probes.len(), 1);
    let errors = parse_with_settings(&broken, Some("quick"), &[]).unwrap_err().to_string();
    assert!(errors.contains("`probe.echo.metrics` is missing"), "{errors}");
}

#[test]
fn a_scale_that_the_study_lacks_is_refused() {
    let errors = parse_with_settings(QUICKSTART, Some("papr"), &[]).unwrap_err();
    assert_snapshot!(errors, @r#"
    error: the study has no scale `papr`
     --> --scale:1:1
      |
    1 | papr
      | ^^^^ expected one of paper, quick, standard
      |
      = help: did you mean `paper`?
    "#);
    let errors = parse_with_settings(STUDY, Some("paper"), &[]).unwrap_err().to_string();
    assert!(errors.contains("the study file has no [scale.*] table"), "{errors}");
}

#[test]
fn settings_are_merged_over_file_and_scale_in_order() {
    let text = format!("{STUDY}[scale.quick]\nblocks.max = 40\n");
    let settings = [
        "blocks.max=30",
        "blocks.max = 20",
        "testbed.rate=1 Gbit/s",
        "title=Mine",
        "factors.family=['ipv6']",
        "comparison=[]",
    ];
    let study = parse_with_settings(&text, Some("quick"), &settings).unwrap();
    assert_eq!(study.rule.max, 20);
    assert_eq!(study.link_config.rate, Some(Rate(1_000_000_000)));
    assert_eq!(study.title, "Mine");
    assert!(study.cells.iter().all(|cell| cell.family == Family::Ipv6));
    assert!(study.comparisons.is_empty());
    let other = parse_with_settings(STUDY, None, &["probe.stream.length.packets=7"]).unwrap();
    assert_eq!(other.probe(Probe::Stream).unwrap().length, Length::Packets(7));
}

#[test]
fn setting_of_nothing_is_refused_with_its_place() {
    let table: &[(&str, &[&str])] = &[
        ("blocks.min", &["this sets nothing", "KEY=VALUE"]),
        ("blocks.min=", &["not TOML", "--set:1:12"]),
        ("=3", &["not TOML", "--set:1:1"]),
        ("factors.size=[64", &["not TOML", "--set:1:"]),
        ("blocks.mn=3", &["no key `blocks.mn`", "--set:1:8", "did you mean `min`?"]),
        ("scale.quick.blocks.min=3", &["no key `scale`", "--set:1:1"]),
        ("blocks.target=banana", &["for `blocks.target`", "--set:1:15"]),
        ("factors.size=[16]", &["a message of 16 bytes", "--set:1:15"]),
        (
            "blocks.min=99",
            &["`blocks.min` is 99 and `blocks.max` is 12", "--set:1:12", "::: study.toml:14:7"],
        ),
    ];
    for (setting, said) in table {
        let errors = parse_with_settings(STUDY, None, &[setting]).unwrap_err().to_string();
        for part in *said {
            assert!(errors.contains(part), "{part:?} is not said of {setting}, but\n{errors}");
        }
    }
}

#[test]
fn every_scale_of_the_quickstart_is_a_study() {
    let plain = parse_with_settings(QUICKSTART, None, &[]).unwrap();
    assert_eq!(plain.cells.len(), 12);
    assert_eq!(parse_with_settings(QUICKSTART, Some("quick"), &[]).unwrap(), plain);
    let standard = parse_with_settings(QUICKSTART, Some("standard"), &[]).unwrap();
    assert_eq!((standard.rule.min, standard.rule.max, standard.cells.len()), (10, 40, 24));
    let paper = parse_with_settings(QUICKSTART, Some("paper"), &[]).unwrap();
    assert_eq!(paper.probe(Probe::Stream).unwrap().length, Length::Packets(1_000_000));
    assert_eq!((paper.rule.min, paper.rule.max, paper.cells.len()), (10, 40, 24));
    assert!(!plain.schedule.is_alone() && paper.schedule.is_alone());
}

#[test]
fn scales_are_checked_even_where_none_is_asked_for() {
    assert_mistakes(&[
        (format!("{STUDY}[scale.quik]\n"), &["no key `scale.quik`", "did you mean `quick`?"]),
        (
            format!("{STUDY}[scale.quick.blocks]\nmin = 1\n"),
            &["for `scale.quick.blocks.min`", "from 2 to 10000"],
        ),
        (format!("{STUDY}[scale.quick.scale]\n"), &["no key `scale.quick.scale`"]),
    ]);
}

#[test]
fn leaves_out_levels_and_their_comparisons() {
    let systems = include_str!("../../../../../studies/stacks.toml");
    let without = parse_with_settings(systems, None, &["without=['linux-6.12', '128']"]).unwrap();
    let all = parse_with_settings(systems, None, &[]).unwrap();
    assert_eq!((all.cells.len(), without.cells.len()), (40, 16));
    assert!(without.cells.iter().all(|cell| cell.size == 1408));
    assert_eq!(list_candidates(&all), ["ipv6", "smoltcp", "gvisor", "linux-6.1", "linux-6.12"]);
    assert_eq!(list_candidates(&without), ["ipv6", "smoltcp", "gvisor", "linux-6.1"]);
    // Without a baseline, what is compared with it is left out too.
    assert_eq!(
        list_candidates(&parse_with_settings(systems, None, &["without=['namespace']"]).unwrap()),
        ["ipv6"]
    );
}

fn list_candidates(study: &Study) -> Vec<&str> {
    study.comparisons.iter().map(|comparison| comparison.candidate.as_str()).collect()
}

#[test]
fn also_without_its_levels_is_left_out() {
    let text = format!("{STUDY}[[include]]\nsize = [64]\n");
    assert_eq!(parse_with_settings(&text, None, &[]).unwrap().cells.len(), 12);
    assert_eq!(parse_with_settings(&text, None, &["without=[64]"]).unwrap().cells.len(), 8);
}

#[test]
fn something_must_be_left_and_levels_must_exist() {
    for (setting, expected) in [
        ("without=['ipv6']", "nothing is left to compare"),
        ("without=[128, 1408]", "factor size has no level left"),
        ("without=['ipv5']", "the study has no level `ipv5`"),
        ("without=['ipv5']", "did you mean `ipv"),
    ] {
        let errors = parse_with_settings(STUDY, None, &[setting]).unwrap_err().to_string();
        assert!(errors.contains(expected), "{setting}: {errors}");
    }
}
