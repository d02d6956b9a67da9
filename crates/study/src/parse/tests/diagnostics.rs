//! How errors are shown.

use crate::parse::tests::{STUDY, errors, parse_with_settings, with};
use insta::assert_snapshot;

#[test]
fn misspelt_key_is_shown_with_line_and_nearest_name() {
    assert_snapshot!(errors(&with("mtu = 1500", "mtuu = 1500")), @r#"
    error: there is no key `testbed.mtuu`
     --> study.toml:3:1
      |
    3 | mtuu = 1500
      | ^^^^ expected one of rate, mtu, offloads, rebuild, topology, wifi, delay, loss, sender_link, receiver_link
      |
      = help: did you mean `mtu`?
    "#);
}

#[test]
fn a_missing_key_is_shown_at_its_table() {
    assert_snapshot!(errors(&with("size = [128, 1408]\n", "")), @r#"
    error: `factors.size` is missing
     --> study.toml:4:1
      |
    4 | [factors]
      | ^^^^^^^^^ expected a key `size` in `factors`
      |
      = help: Bytes per message, or per frame with size_of = frame.
    "#);
}

#[test]
fn a_missing_table_is_shown_at_the_file() {
    assert_snapshot!(errors(&STUDY.replace("title = \"A study\"\n", "")), @r#"
    error: `title` is missing
     --> study.toml:1:1
      |
    1 | [testbed]
      | ^ expected a key `title` in this file
      |
      = help: The title of reports.
    "#);
}

#[test]
fn an_empty_file_lacks_what_a_study_needs() {
    assert_snapshot!(errors(""), @r#"
    error: `title` is missing
     --> study.toml:1:1
      |
    1 |
      | ^ expected a key `title` in this file
      |
      = help: The title of reports.

    error: `factors` is missing
     --> study.toml:1:1
      |
    1 |
      | ^ expected a key `factors` in this file
      |
      = help: The factors. Every combination of levels is a cell of the study.

    error: `probe` is missing
     --> study.toml:1:1
      |
    1 |
      | ^ expected a key `probe` in this file
      |
      = help: How each cell is measured: one table for each probe, at least one.
    "#);
}

#[test]
fn size_that_fits_only_one_family_is_refused() {
    assert_snapshot!(errors(&with("1408", "1440")), @r#"
    error: 1440 bytes do not fit one TCP segment over ipv6 at an MTU of 1500
     --> study.toml:8:14
      |
    8 | size = [128, 1440]
      |              ^^^^ expected at most 1428, or size_of = ["write"]
    "#);
}

#[test]
fn both_contradicting_places_are_shown() {
    assert_snapshot!(errors(&with("min = 6", "min = 60")), @r#"
    error: `blocks.min` is 60 and `blocks.max` is 12
      --> study.toml:13:7
       |
    13 | min = 60
       |       ^^ expected at most 12
    14 | max = 12
       |       -- or a larger one here
    "#);
}

#[test]
fn a_default_that_contradicts_is_shown_too() {
    assert_snapshot!(errors(&with("min = 6\nmax = 12", "min = 60")), @r#"
    error: `blocks.min` is 60 and `blocks.max` is 40
      --> study.toml:13:7
       |
    13 | min = 60
       |       ^^ expected at most 40
       |
      ::: default of blocks.max:1:7
       |
     1 | max = 40
       |       -- or a larger one here
    "#);
}

#[test]
fn an_error_in_a_setting_points_into_the_command_line() {
    assert_snapshot!(parse_with_settings(STUDY, None, &["blocks.min=0"]).unwrap_err(), @r#"
    error: cannot use this value for `blocks.min`
     --> --set:1:12
      |
    1 | blocks.min=0
      |            ^ expected a whole number from 2 to 10000
    "#);
}

#[test]
fn what_is_not_toml_is_shown_at_its_place() {
    assert_snapshot!(errors("title = \"A study\"\n[factors]\nfamily = ipv4\nsize = [128\n"), @r#"
    error: not TOML: text must be in quotes
     --> study.toml:3:10
      |
    3 | family = ipv4
      |          ^^^^ expected "ipv4"

    error: not TOML: unclosed array
     --> study.toml:4:12
      |
    4 | size = [128
      |            ^ expected `]`
    "#);
}

#[test]
fn all_errors_are_told_at_once() {
    let text = with("\"ipv4\", \"ipv6\"]\n", "\"ipv5\"]\ncolour = 3\n").replace("min = 6", "min = 1");
    let errors = errors(&text.replace("candidate = \"ipv6\"", "candidate = 6.0"));
    assert_snapshot!(errors, @r#"
    error: there is no family `ipv5`
     --> study.toml:5:11
      |
    5 | family = ["ipv5"]
      |           ^^^^^^ expected one of ipv4, ipv6
      |
      = help: did you mean `ipv4`?

    error: there is no key `factors.colour`
     --> study.toml:6:1
      |
    6 | colour = 3
      | ^^^^^^ expected one of flows, os, rules, routes, io and 34 more: stacklab study reference

    error: cannot use this value for `blocks.min`
      --> study.toml:14:7
       |
    14 | min = 1
       |       ^ expected a whole number from 2 to 10000

    error: cannot use this value for `comparison.candidate`
      --> study.toml:19:13
       |
    19 | candidate = 6.0
       |             ^^^ expected a level of the factor, such as "ipv4" or 128
    "#);
    assert_eq!(errors.count(), 4);
}

#[test]
fn connections_are_a_number_or_off() {
    let errors = errors(&with("size = [128, 1408]", "size = [128]\nconntrack = [\"on\", -1]"));
    let expected = "expected a whole number from 0 to 1000000, or \"off\"";
    assert_eq!(errors.to_string().matches(expected).count(), 2, "{errors}");
}

#[test]
fn a_hostile_file_is_refused_soon_and_in_few_words() {
    let sizes: Vec<String> = (0..60_000).map(|size| (1_000_000 + size).to_string()).collect();
    let text = with("size = [128, 1408]", &format!("size = [{}]", sizes.join(", ")));
    let start = std::time::Instant::now();
    let errors = errors(&text);
    let message = errors.to_string();
    assert!(start.elapsed() < std::time::Duration::from_secs(10), "{:?}", start.elapsed());
    assert!(errors.count() >= 60_000 && message.ends_with(" more problems"), "{}", errors.count());
    assert_eq!(message.matches("error:").count(), 20);
    let first = message.split("\n\n").next().unwrap();
    insta::assert_snapshot!(first, @r"
    error: cannot use this value for `factors.size`
    --> study.toml:8:437202
     = note: expected a whole number from 1 to 1048576
    ");
    let long = format!("{STUDY}# {}", "x".repeat(1 << 20));
    let message = self::errors(&long).to_string();
    assert!(message.contains("expected at most 1048576") && message.len() < 1000, "{message}");
}
