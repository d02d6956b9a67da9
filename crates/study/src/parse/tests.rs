use super::*;
use insta::assert_snapshot;
use proptest::prelude::*;
use stacklab_model::{Family, Length, Metric, Pacing, Probe, Rate, RoutedKind, Translator};

const QUICKSTART: &str = include_str!("../../../../studies/quickstart.toml");

const STUDY: &str = r#"title = "A study"
[testbed]
mtu = 1500
[factors]
family = ["ipv4", "ipv6"]
transport = ["tcp", "udp"]
framing = ["segment"]
size = [128, 1408]
[probe.stream]
metrics = ["throughput"]
length = { time = "200ms" }
[runs]
min = 6
max = 12
[[comparison]]
factor = "family"
baseline = "ipv4"
candidate = "ipv6"
"#;

fn study(text: &str) -> Study {
    parse(&Input::file("study.toml", text)).unwrap_or_else(|errors| panic!("{errors}"))
}

fn errors(text: &str) -> StudyErrors {
    parse(&Input::file("study.toml", text)).expect_err("this study must be refused")
}

/// The example with one part replaced.
fn with(part: &str, by: &str) -> String {
    assert!(STUDY.contains(part), "{part}");
    STUDY.replace(part, by)
}

fn adjusted(text: &str, scale: Option<&str>, settings: &[&str]) -> Result<Study, StudyErrors> {
    let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
    parse(&Input { name: "study.toml", text, scale, settings: &settings })
}

#[test]
fn messages_may_leave_at_the_links_rate() {
    let paced = with("\"200ms\" }", "\"200ms\" }\npacket_rate = \"link\"");
    let study = study(&paced.replace("mtu = 1500", "rate = \"1 Gbit/s\""));
    assert_eq!(study.probe(Probe::Stream).unwrap().pacing, Pacing::Link);
}

#[test]
fn behind_routers_every_pair_of_systems_has_every_mechanism_and_all_routers() {
    let rows = |factors: &str| -> Vec<String> {
        let text = routed(factors);
        let said = |row: &RoutedKind| format!("{} {} {}", row.mechanism, row.clients, row.routers);
        let mut rows: Vec<String> = study(&text).rows().iter().map(said).collect();
        rows.sort();
        rows
    };
    assert_eq!(
        rows("mechanism = [\"native\", \"nat64\"]\nos = [\"namespace\", \"namespace -> uml\"]"),
        [
            "nat64 namespace -> uml namespace",
            "nat64 namespace namespace",
            "native namespace -> uml namespace",
            "native namespace namespace",
        ]
    );
    assert_eq!(
        rows("routers = [\"namespace\", \"uml -> linux-6.1\"]"),
        ["native namespace namespace", "native namespace uml -> linux-6.1"]
    );
    assert_eq!(study(STUDY).rows(), []);
}

/// A study between two routers, with these factors more.
fn routed(factors: &str) -> String {
    with("mtu = 1500", "topology = \"routed\"")
        .replace("size = [128, 1408]", &format!("size = [128]\n{factors}"))
}

#[test]
fn a_translator_that_is_asked_for_is_a_rows_own() {
    let translators = |factors: &str| -> Vec<Option<Translator>> {
        study(&routed(factors)).rows().iter().map(|row| row.translator).collect()
    };
    assert_eq!(translators("mechanism = [\"nat64\", \"464xlat\"]"), [None, None]);
    let both = translators("mechanism = [\"nat64\", \"464xlat\"]\ntranslator = [\"tayga\", \"jool\"]");
    assert_eq!(both.len(), 4);
    assert!([Translator::Tayga, Translator::Jool].iter().all(|one| both.contains(&Some(*one))));
    let forward_only = |factors| study(&routed(factors)).flows_forward_only();
    assert!(forward_only("direction = [\"forward\"]") && forward_only(""));
    assert!(!forward_only("direction = [\"forward\", \"both\"]"));
}

#[test]
fn a_translator_that_translates_nothing_or_not_that_way_is_refused() {
    assert_snapshot!(errors(&routed("mechanism = [\"native\"]\ntranslator = [\"jool\"]")), @r#"
    error: no mechanism of this study translates
      --> study.toml:10:15
       |
    10 | translator = ["jool"]
       |               ^^^^^^ translates nothing
       |
       = help: leave the factor out, or add nat64, siit or 464xlat to factors.mechanism
    "#);
    let back = |mechanisms: &str, translator: &str| {
        routed(&format!("mechanism = {mechanisms}\ndirection = [\"reverse\"]\ntranslator = [{translator}]"))
    };
    let all = "[\"siit\", \"464xlat\", \"nat64\"]";
    assert_snapshot!(errors(&back(all, "\"jool\"")), @r#"
    error: `464xlat` by jool lets connections begin at the sender only
      --> study.toml:10:14
       |
    10 | direction = ["reverse"]
       |              ^^^^^^^^^ begins at the receiver
    11 | translator = ["jool"]
       |               ------ together with this
       |
       = help: leave this direction out, or take "tayga" in factors.translator
    "#);
    // One address to one, and what keeps no state, let everything through.
    assert_eq!(study(&back(all, "\"tayga\"")).rows().len(), 3);
    assert_eq!(study(&back("[\"siit\", \"native\"]", "\"jool\"")).rows().len(), 2);
}

#[test]
fn defaults_fill_what_is_left_out() {
    let text = with("[testbed]\nmtu = 1500\n", "").replace("framing = [\"segment\"]\n", "");
    let study = study(&text.replace("[runs]\nmin = 6\nmax = 12\n", ""));
    assert_eq!(
        (study.link_config.rate, study.link_config.mtu, study.link_config.offloads),
        (None, 1500, false)
    );
    assert_eq!((study.rule.min, study.rule.max, study.rule.target), (10, 40, 0.02));
    assert_eq!(study.rule.budget_ns, None);
    let stream = study.probe(Probe::Stream).unwrap();
    assert_eq!((stream.warmup_ns, stream.interval_ns), (50_000_000, 100_000_000));
    assert_eq!(stream.pacing, Pacing::Flood);
    assert_eq!(study.comparisons[0].metrics, [Metric::Throughput]);
    assert_eq!(study.comparisons[0].margin, 0.02);
    assert!(study.cells.iter().all(|cell| cell.replica.is_empty()));
    assert_eq!(study.probe(Probe::Echo), None);
}

#[test]
fn each_probe_has_its_pacing() {
    let probes = r#"[probe.stream]
packet_rate = 1000
metrics = ["throughput"]
length = { packets = 1_000_000 }
[probe.echo]
metrics = ["rtt"]
length = { time = "1s" }
[probe.echo_open]
packet_rate = 0.5
metrics = ["rtt_open"]
length = { time = "10s" }
[probe.connect]
metrics = ["connect_time"]
length = { packets = 100 }
"#;
    let study =
        study(&with("[probe.stream]\nmetrics = [\"throughput\"]\nlength = { time = \"200ms\" }\n", probes));
    let pacing = |probe| study.probe(probe).unwrap().pacing;
    assert_eq!(pacing(Probe::Stream), Pacing::Schedule(1000.0));
    assert_eq!(pacing(Probe::Echo), Pacing::Lockstep);
    assert_eq!(pacing(Probe::EchoOpen), Pacing::Schedule(0.5));
    assert_eq!(pacing(Probe::Connect), Pacing::Lockstep);
    assert_eq!(study.probe(Probe::Connect).unwrap().length, Length::Packets(100));
}

#[test]
fn a_misspelt_key_is_shown_with_its_line_and_the_nearest_name() {
    assert_snapshot!(errors(&with("mtu = 1500", "mtuu = 1500")), @r#"
    error: there is no key `testbed.mtuu`
     --> study.toml:3:1
      |
    3 | mtuu = 1500
      | ^^^^ expected one of rate, mtu, offloads, topology, delay, loss, near, far
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
      = help: Bytes per message, or per frame in frame framing.
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
      = help: What the study asks, as the heading of its reports.
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
      = help: What the study asks, as the heading of its reports.

    error: `factors` is missing
     --> study.toml:1:1
      |
    1 |
      | ^ expected a key `factors` in this file
      |
      = help: What is varied. Every combination of levels is a cell of the study.

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
fn a_size_that_fits_one_family_and_not_the_other_is_refused() {
    assert_snapshot!(errors(&with("1408", "1440")), @r#"
    error: 1440 bytes do not fit one TCP segment over ipv6 at an MTU of 1500
     --> study.toml:8:14
      |
    8 | size = [128, 1440]
      |              ^^^^ expected at most 1428, or framing "message"
    "#);
}

#[test]
fn two_places_that_contradict_each_other_are_both_shown() {
    assert_snapshot!(errors(&with("min = 6", "min = 60")), @r#"
    error: `runs.min` is 60 and `runs.max` is 12
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
    error: `runs.min` is 60 and `runs.max` is 40
      --> study.toml:13:7
       |
    13 | min = 60
       |       ^^ expected at most 40
       |
      ::: default of runs.max:1:7
       |
     1 | max = 40
       |       -- or a larger one here
    "#);
}

#[test]
fn an_error_in_a_setting_points_into_the_command_line() {
    assert_snapshot!(adjusted(STUDY, None, &["runs.min=0"]).unwrap_err(), @r#"
    error: cannot use this value for `runs.min`
     --> --set:1:10
      |
    1 | runs.min=0
      |          ^ expected a whole number from 2 to 10000
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
      | ^^^^^^ expected one of family, transport, framing, size, replica, os, services, mechanism, routers, translator, io, flows, direction, mtu, queue_length, pinning, send_buffer, receive_buffer, mss, nodelay, congestion_control, dscp, flow_label, busy_poll, kernel_pacing

    error: cannot use this value for `runs.min`
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

/// What is wrong, and what is said of it.
#[test]
fn every_mistake_is_named() {
    let probe = "metrics = [\"throughput\"]\nlength = { time = \"200ms\" }\n";
    let echo = "[probe.echo]\nmetrics = [\"rtt\"]\nlength = { time = \"1s\" }\n[runs]";
    let open = "[probe.echo_open]\nmetrics = [\"rtt_open\"]\nlength = { time = \"1s\" }\n[runs]";
    let table: &[(String, &[&str])] = &[
        // Values that are not of their kind.
        (with("\"A study\"", "\"\""), &["for `title`", "text in quotes, not empty"]),
        (with("mtu = 1500", "mtu = 1279"), &["for `testbed.mtu`", "a whole number from 1280 to 65535"]),
        (with("mtu = 1500", "mtu = 99999999999999999999999999999999999999999"), &["from 1280 to 65535"]),
        (with("mtu = 1500", "rate = \"1 Gbps\""), &["for `testbed.rate`", "a rate such as"]),
        (with("mtu = 1500", "rate = 1000"), &["for `testbed.rate`", "a rate such as"]),
        (with("mtu = 1500", "offloads = \"no\""), &["for `testbed.offloads`", "true or false"]),
        (with("[testbed]\nmtu = 1500", "testbed = 3"), &["for `testbed`", "a table: [testbed]"]),
        (with("min = 6", "min = 1"), &["for `runs.min`", "from 2 to 10000"]),
        (with("max = 12", "max = 10001"), &["for `runs.max`", "from 2 to 10000"]),
        (with("max = 12", "max = 12\ntarget = 2"), &["for `runs.target`", "a share above 0 and below 1"]),
        (with("max = 12", "max = 12\ntarget = nan"), &["for `runs.target`", "a share above 0 and below 1"]),
        (
            with("max = 12", "max = 12\nbudget = \"10ms\""),
            &["for `runs.budget`", "a duration from 1s to 720h"],
        ),
        (with("max = 12", "max = 12\nbudget = 2020-01-01"), &["for `runs.budget`", "a duration such as"]),
        // Factors.
        (with("[\"ipv4\", \"ipv6\"]", "\"ipv4\""), &["for `factors.family`", "a list in brackets"]),
        (with("[\"ipv4\", \"ipv6\"]", "[]"), &["for `factors.family`", "at least one item"]),
        (with("[\"segment\"]", "[\"segmnt\"]"), &["no framing `segmnt`", "did you mean `segment`?"]),
        (with("[\"tcp\", \"udp\"]", "[\"udp\", \"udp\"]"), &["`udp` stands twice in `factors.transport`"]),
        (with("[128, 1408]", "[128, 1408, 128]"), &["`128` stands twice in `factors.size`", "first here"]),
        (with("[128, 1408]", "[0]"), &["for `factors.size`", "a whole number from 1 to"]),
        (with("[128, 1408]", "[-128]"), &["for `factors.size`", "a whole number from 1 to"]),
        (with("[128, 1408]", "[2_000_000]"), &["for `factors.size`", "to 1048576"]),
        (
            with("size = [128, 1408]", "size = [128]\nreplica = [\"\"]"),
            &["for `factors.replica`", "not empty"],
        ),
        // What routers do not go with.
        (
            with("mtu = 1500", "topology = \"routed\"")
                .replace("size = [128, 1408]", "size = [128]\nos = [\"namespace\", \"here -> ssh:lab\"]"),
            &[
                "`here` cannot be a client behind routers",
                "network of its own",
                "clients are namespace, gvisor",
            ],
        ),
        (
            with("mtu = 1500", "topology = \"routed\"")
                .replace("size = [128, 1408]", "size = [128]\nos = [\"ssh:lab\"]"),
            &["`here` cannot be a client behind routers"],
        ),
        (
            with("mtu = 1500", "topology = \"routed\"")
                .replace("size = [128, 1408]", "size = [128]\nrouters = [\"gvisor\", \"uml\"]"),
            &["`gvisor` cannot be a router", "no tunnels", "routers are namespace, uml"],
        ),
        (
            with("mtu = 1500", "topology = \"routed\"")
                .replace("size = [128, 1408]", "size = [128]\nrouters = [\"uml -> ssh:lab\"]"),
            &["`ssh:lab` cannot be a router", "network of its own"],
        ),
        (
            with("size = [128, 1408]", "size = [128]\nrouters = [\"uml\"]"),
            &["`factors.routers` needs two routers", "topology = \"routed\""],
        ),
        (
            with("mtu = 1500", "topology = \"routed\"")
                .replace("size = [128, 1408]", "size = [128]\nservices = [\"none\", \"dns\"]"),
            &["`services` cannot be set behind routers"],
        ),
        (with("mtu = 1500", "near = { delay = \"1ms\" }"), &["`testbed.near` needs two routers"]),
        (
            with("mtu = 1500", "topology = \"routed\"\nmtu = 1500\nfar = { mtu = 1400 }"),
            &[
                "`testbed.far.mtu` makes this link narrower",
                "the middle link's",
                "give it (testbed.mtu) the least",
            ],
        ),
        (
            with(
                "mtu = 1500",
                "topology = \"routed\"\nrate = \"1 Gbit/s\"\nnear = { rate = \"100 Mbit/s\" }",
            ),
            &["`testbed.near.rate` makes this link narrower"],
        ),
        (
            with("mtu = 1500", "topology = \"routed\"\nnear = { rate = \"1 Gbit/s\" }"),
            &["`testbed.near.rate` makes this link narrower"],
        ),
        // Sizes that cannot be sent.
        (with("128,", "31,"), &["a message of 31 bytes does not hold", "at least 32"]),
        (
            with("\"segment\"", "\"frame\"").replace("\"tcp\", ", "").replace("128,", "84,"),
            &["a frame of 84 bytes leaves 18 bytes behind the ipv6 and udp headers", "at least 98 for ipv6"],
        ),
        (
            with("\"segment\"", "\"frame\"").replace("\"tcp\", ", "").replace("128,", "1519,"),
            &["a frame of 1519 bytes does not fit the link's MTU of 1500", "at most 1518"],
        ),
        (
            with("\"segment\"", "\"segment\", \"frame\""),
            &["frame framing is not possible with tcp", "together"],
        ),
        (
            with("[\"tcp\", \"udp\"]", "[\"udp\"]").replace("1408", "65508"),
            &["UDP datagram over ipv4 cannot hold 65508", "at most 65507"],
        ),
        (
            STUDY[..STUDY.find("[[").unwrap()]
                .replace("\"tcp\", \"udp\"", "\"udp\"")
                .replace("\"ipv4\", \"ipv6\"", "\"ipv6\"")
                .replace("1408", "65528"),
            &["UDP datagram over ipv6 cannot hold 65528", "at most 65527"],
        ),
        // Probes.
        (with(probe, "").replace("[probe.stream]", "[probe]"), &["`probe` is empty", "one of stream, echo"]),
        (with("probe.stream", "probe.stram"), &["no key `probe.stram`", "did you mean `stream`?"]),
        (with("[\"throughput\"]", "[\"rtt\"]"), &["probe stream does not take `rtt`", "under [probe.echo]"]),
        (
            with("[\"throughput\"]", "[\"goodput\"]"),
            &["no metric `goodput`", "one of throughput, packet_rate"],
        ),
        (
            with("[\"throughput\"]", "[\"loss\", \"loss\"]"),
            &["`loss` stands twice in `probe.stream.metrics`"],
        ),
        (with("metrics = [\"throughput\"]\n", ""), &["`probe.stream.metrics` is missing"]),
        (with("length = { time = \"200ms\" }\n", ""), &["`probe.stream.length` is missing"]),
        (
            with("{ time = \"200ms\" }", "{ time = \"0ms\" }"),
            &["`probe.stream.length.time`", "from 1ms to 24h"],
        ),
        (
            with("{ time = \"200ms\" }", "{ packets = 0 }"),
            &["`probe.stream.length.packets`", "number from 1 to"],
        ),
        (
            with("{ time = \"200ms\" }", "{ time = \"1s\", packets = 9 }"),
            &["with exactly one of packets, time"],
        ),
        (with("{ time = \"200ms\" }", "{ bytes = 1 }"), &["no key `probe.stream.length.bytes`"]),
        (with("{ time", "{ packets = 10 }\nwarmup = \"2h\" #"), &["`probe.stream.warmup`", "from 0s to 1h"]),
        (
            with("{ time", "{ packets = 10 }\ninterval = \"0s\" #"),
            &["`probe.stream.interval`", "from 1ms to 1h"],
        ),
        (
            with("\"200ms\" }", "\"24h\" }\ninterval = \"1ms\""),
            &["86400000 rows of this interval", "at least 864 ms"],
        ),
        (
            with("\"200ms\" }", "\"200ms\" }\npacket_rate = 4"),
            &["no message is due within a run of 200 ms", "5 per"],
        ),
        (with("\"200ms\" }", "\"200ms\" }\npacket_rate = -1"), &["for `probe.stream.packet_rate`"]),
        (
            with("\"200ms\" }", "\"200ms\" }\npacket_rate = \"most\""),
            &["for `probe.stream.packet_rate`", "or \"link\""],
        ),
        (
            with("\"200ms\" }", "\"200ms\" }\npacket_rate = \"link\""),
            &["no rate that messages could be sent at", "add rate to [testbed]"],
        ),
        (with("[runs]", open), &["`probe.echo_open.packet_rate` is missing"]),
        (
            with("[runs]", &echo.replace("[runs]", "packet_rate = 5\n[runs]")),
            &["`probe.echo.packet_rate` has no meaning", "echo_open keeps a schedule"],
        ),
        (
            with("[\"tcp\", \"udp\"]", "[\"udp\"]").replace(
                "[runs]",
                "[probe.connect]\nmetrics = [\"connect_time\"]\nlength = { packets = 9 }\n[runs]",
            ),
            &["probe connect needs TCP", "the only transport"],
        ),
        // Comparisons.
        (with("factor = \"family\"\n", ""), &["`comparison.factor` is missing"]),
        (with("factor = \"family\"", "factor = \"famly\""), &["no factor `famly`", "did you mean `family`?"]),
        (
            with("= \"ipv6\"", "= \"ipv5\""),
            &["`ipv5` is not a level of factor family", "did you mean `ipv4`?"],
        ),
        (with("= \"ipv6\"", "= \"ipv4\""), &["baseline and candidate are both `ipv4`", "factor replica"]),
        (
            with("factor = \"family\"", "factor = \"replica\""),
            &["no factor `replica`", "replica = [\"a\", \"b\"]"],
        ),
        (
            with("= \"ipv6\"", "= \"ipv6\"\nmargin = \"100 %\""),
            &["for `comparison.margin`", "a share above 0"],
        ),
        (with("= \"ipv6\"", "= \"ipv6\"\nmetrics = []"), &["for `comparison.metrics`", "at least one item"]),
        (with("= \"ipv6\"", "= \"ipv6\"\nmetrics = [\"rtt\"]"), &["does not measure `rtt`", "[probe.echo]"]),
        (with("[[comparison]]", "[comparison]"), &["for `comparison`", "[[comparison]]"]),
        (
            format!(
                "{STUDY}[[comparison]]\nfactor = \"family\"\nbaseline = \"ipv6\"\ncandidate = \"ipv4\"\n"
            ),
            &["asks what another one asks", "first here"],
        ),
        (
            with("factor = \"family\"", "factor = \"mtu\""),
            &["no factor `mtu`", "mtu = [1500, 9000] to [factors]"],
        ),
        // Settings.
        (with("size =", "io = [\"plan\"]\nsize ="), &["no I/O path `plan`", "did you mean `plain`?"]),
        (with("size =", "mtu = [1279]\nsize ="), &["for `factors.mtu`", "from 1280 to 65535"]),
        (with("size =", "dscp = [64]\nsize ="), &["for `factors.dscp`", "from 0 to 63"]),
        (with("size =", "nodelay = [1]\nsize ="), &["for `factors.nodelay`", "true or false"]),
        (with("size =", "mss = [87]\nsize ="), &["for `factors.mss`", "from 88 to"]),
        (
            with("size =", "nodelay = [true, true]\nsize ="),
            &["`true` stands twice in `factors.nodelay`", "first here"],
        ),
        (
            with("size =", "kernel_pacing = [true]\nsize ="),
            &["no schedule for the kernel to keep", "add packet_rate to probe.stream"],
        ),
        (
            with("size =", "nodelay = [true, false]\nsize ="),
            &["`nodelay` needs tcp", "together with this", "give factors.nodelay one level"],
        ),
        (
            with("size =", "io = [\"plain\", \"segment\"]\nsize ="),
            &["io `segment` needs udp", "together with this"],
        ),
        (
            with("\"tcp\", \"udp\"]", "\"udp\"]\nio = [\"zerocopy\"]"),
            &["io `zerocopy` needs tcp", "the only transport", "add \"tcp\" to factors.transport"],
        ),
        (
            with("size =", "flow_label = [1, 2]\nsize ="),
            &["`flow_label` needs ipv6", "leave this family out"],
        ),
        (
            with("size =", "mtu = [9000, 1280]\nsize =").replace("1408", "1220"),
            &["1220 bytes do not fit one TCP segment over ipv6 at an MTU of 1280", "at most 1208"],
        ),
        (
            with("size =", "mss = [1441]\nsize ="),
            &["segments of 1441 bytes do not fit the link's MTU", "at most 1440"],
        ),
        (
            with("size =", "mss = [536]\nsize ="),
            &["1408 bytes do not fit one TCP segment at an MSS of 536", "at most 524"],
        ),
        (
            with("size = [128, 1408]", "flows = [1, 10_000]\nframing = [\"message\"]\nsize = [100_000]")
                .replace("framing = [\"segment\"]\n", "")
                .replace("\"tcp\", \"udp\"", "\"tcp\""),
            &["10000 flows with messages of 100000 bytes", "at most 2684 flows"],
        ),
        (
            with("size =", "congestion_control = [\"a_name_that_is_long\"]\nsize ="),
            &["no congestion control is called `a_name_that_is_long`", "at most 15"],
        ),
        // Scales are checked even where none is asked for.
        (format!("{STUDY}[scale.quik]\n"), &["no key `scale.quik`", "did you mean `quick`?"]),
        (format!("{STUDY}[scale.quick.runs]\nmin = 1\n"), &["for `scale.quick.runs.min`", "from 2 to 10000"]),
        (format!("{STUDY}[scale.quick.scale]\n"), &["no key `scale.quick.scale`"]),
    ];
    for (text, said) in table {
        let errors = errors(text);
        assert_eq!(errors.count(), 1, "one mistake is one problem\n{errors}");
        let errors = errors.to_string();
        for part in *said {
            assert!(errors.contains(part), "{part:?} is not said of\n{text}\nbut\n{errors}");
        }
        assert!(errors.contains("--> study.toml:"), "{errors}");
    }
}

#[test]
fn the_largest_and_smallest_sizes_are_accepted() {
    study(&with("[128, 1408]", "[32, 1428]"));
    study(&with("[\"tcp\", \"udp\"]", "[\"udp\"]").replace("[128, 1408]", "[32, 65507]"));
    study(
        &with("[\"tcp\", \"udp\"]", "[\"udp\"]")
            .replace("\"segment\"", "\"frame\"")
            .replace("128", "98")
            .replace("1408", "1518"),
    );
    study(
        &with("\"segment\"", "\"message\"").replace("\"tcp\", \"udp\"", "\"tcp\"").replace("1408", "131_072"),
    );
}

#[test]
fn settings_are_crossed_with_all_else_and_keep_their_levels_as_written() {
    let text = with("size = [128, 1408]", "size = [128]\nmtu = [9_000, 1500]\nio = [\"auto\", \"plain\"]")
        .replace("\"tcp\", \"udp\"", "\"tcp\"")
        .replace(
            "[probe.stream]",
            "nodelay = [true, false]\ncongestion_control = [\"reno\"]\n[probe.stream]",
        );
    let study = study(&text);
    assert_eq!(study.cells.len(), 2 * 2 * 2 * 2);
    let first = &study.cells[0];
    assert_eq!(
        first.to_string(),
        "ipv4 tcp segment 128 B io=auto mtu=9000 nodelay=true congestion_control=reno"
    );
    assert_eq!(study.link_config.mtu_of(first), 9000);
    let distinct: std::collections::BTreeSet<_> = study.cells.iter().collect();
    assert_eq!(distinct.len(), study.cells.len());
}

#[test]
fn settings_are_compared_by_text_number_and_truth() {
    let compared = |factor: &str, baseline: &str, candidate: &str| {
        let levels =
            "size = [128, 1408]\nio = [\"plain\", \"batch\"]\nmtu = [1500, 9000]\nnodelay = [true, false]";
        let text = with("size = [128, 1408]", levels)
            .replace("\"tcp\", \"udp\"", "\"tcp\"")
            .replace("factor = \"family\"", &format!("factor = \"{factor}\""))
            .replace("baseline = \"ipv4\"", &format!("baseline = {baseline}"))
            .replace("candidate = \"ipv6\"", &format!("candidate = {candidate}"));
        let study = study(&text);
        let questions = study.questions();
        // One metric, and half of all cells are at the baseline.
        assert_eq!(questions.len(), study.cells.len() / 2);
        for question in &questions {
            assert!(question.baseline.same_but(&question.candidate, question.factor));
            assert!(study.cells.contains(&question.candidate), "{}", question.candidate);
        }
        (questions[0].baseline.level(questions[0].factor), questions[0].candidate.level(questions[0].factor))
    };
    assert_eq!(compared("nodelay", "false", "true"), ("false".into(), "true".into()));
    assert_eq!(compared("mtu", "1500", "\"9000\""), ("1500".into(), "9000".into()));
    assert_eq!(compared("io", "\"plain\"", "\"batch\""), ("plain".into(), "batch".into()));
}

#[test]
fn services_are_a_setting_of_their_own_language() {
    let levels = |levels: &str| with("size = [128, 1408]", &format!("size = [128]\nservices = [{levels}]"));
    let study = study(&levels("\"none\", \"dns+directory\""));
    let of = |services: &str| ("namespace".parse().unwrap(), services.parse().unwrap());
    assert_eq!(study.labs(), [of("none"), of("dns+directory")]);
    assert_eq!(study.systems().len(), 1);
    for (wrong, said) in [
        ("\"dns+directry\"", "did you mean `directory`?"),
        ("\"web\"", "there is no service `web`"),
        ("\"dns+dns\"", "the service `dns` is named twice"),
        ("53", "expected \"none\", or names joined by +"),
    ] {
        let errors = errors(&levels(wrong)).to_string();
        assert!(errors.contains(said) && errors.contains("study.toml:"), "{said} is not in\n{errors}");
    }
    let guests = levels("\"dns\"").replace("services =", "os = [\"gvisor\"]\nservices =");
    let errors = errors(&guests).to_string();
    assert!(errors.contains("`services` can be set between namespaces only"), "{errors}");
}

#[test]
fn a_fixed_setting_holds_wherever_it_can() {
    let text = with("size = [128, 1408]", "size = [128]\nmss = [1200]\nflow_label = [7]\nio = [\"segment\"]");
    let cells: Vec<String> = study(&text).cells.iter().map(ToString::to_string).collect();
    assert_eq!(
        cells,
        [
            "ipv4 tcp segment 128 B mss=1200",
            "ipv6 tcp segment 128 B mss=1200 flow_label=7",
            "ipv4 udp segment 128 B io=segment",
            "ipv6 udp segment 128 B io=segment flow_label=7",
        ]
    );
}

#[test]
fn too_large_a_matrix_is_refused_before_it_is_made() {
    let sizes: Vec<String> = (32..1_000).map(|size| size.to_string()).collect();
    let replicas: Vec<String> = (0..1_000).map(|replica| format!("\"{replica}\"")).collect();
    let levels = format!("size = [{}]\nreplica = [{}]", sizes.join(","), replicas.join(","));
    let errors = errors(&with("size = [128, 1408]", &levels)).to_string();
    assert!(errors.contains("the factors make 3872000 cells"), "{errors}");
}

#[test]
fn a_scale_is_merged_over_the_study_key_by_key() {
    let text = format!(
        "{STUDY}[scale.paper]\nruns.max = 40\nprobe.stream.length = {{ packets = 5 }}\nfactors.size = [64]\n"
    );
    let plain = adjusted(&text, None, &[]).unwrap();
    assert_eq!(plain, study(STUDY));
    let paper = adjusted(&text, Some("paper"), &[]).unwrap();
    assert_eq!((paper.rule.min, paper.rule.max), (6, 40));
    assert_eq!(paper.probe(Probe::Stream).unwrap().length, Length::Packets(5));
    assert_eq!(paper.cells.len(), 4);
    assert!(paper.cells.iter().all(|cell| cell.size == 64));
}

#[test]
fn a_scale_may_bring_a_probe_of_its_own() {
    let text = format!("{STUDY}[scale.quick.probe.echo]\nmetrics = [\"rtt\"]\nlength = {{ packets = 5 }}\n");
    assert_eq!(adjusted(&text, Some("quick"), &[]).unwrap().probes.len(), 2);
    let broken = text.replace("metrics = [\"rtt\"]\n", "");
    assert_eq!(adjusted(&broken, None, &[]).unwrap().probes.len(), 1);
    let errors = adjusted(&broken, Some("quick"), &[]).unwrap_err().to_string();
    assert!(errors.contains("`probe.echo.metrics` is missing"), "{errors}");
}

#[test]
fn a_scale_that_the_study_lacks_is_refused() {
    let errors = adjusted(QUICKSTART, Some("papr"), &[]).unwrap_err();
    assert_snapshot!(errors, @r#"
    error: the study has no scale `papr`
     --> --scale:1:1
      |
    1 | papr
      | ^^^^ expected one of paper, quick, standard
      |
      = help: did you mean `paper`?
    "#);
    let errors = adjusted(STUDY, Some("paper"), &[]).unwrap_err().to_string();
    assert!(errors.contains("the study file has no [scale.*] table"), "{errors}");
}

#[test]
fn settings_are_merged_over_file_and_scale_in_their_order() {
    let text = format!("{STUDY}[scale.quick]\nruns.max = 40\n");
    let settings = [
        "runs.max=30",
        "runs.max = 20",
        "testbed.rate=1 Gbit/s",
        "title=Mine",
        "factors.family=['ipv6']",
        "comparison=[]",
    ];
    let study = adjusted(&text, Some("quick"), &settings).unwrap();
    assert_eq!(study.rule.max, 20);
    assert_eq!(study.link_config.rate, Some(Rate(1_000_000_000)));
    assert_eq!(study.title, "Mine");
    assert!(study.cells.iter().all(|cell| cell.family == Family::Ipv6));
    assert!(study.comparisons.is_empty());
    let other = adjusted(STUDY, None, &["probe.stream.length.packets=7"]).unwrap();
    assert_eq!(other.probe(Probe::Stream).unwrap().length, Length::Packets(7));
}

#[test]
fn a_setting_that_sets_nothing_is_refused_with_its_place() {
    let table: &[(&str, &[&str])] = &[
        ("runs.min", &["this sets nothing", "KEY=VALUE"]),
        ("runs.min=", &["not TOML", "--set:1:10"]),
        ("=3", &["not TOML", "--set:1:1"]),
        ("factors.size=[64", &["not TOML", "--set:1:"]),
        ("runs.mn=3", &["no key `runs.mn`", "--set:1:6", "did you mean `min`?"]),
        ("scale.quick.runs.min=3", &["no key `scale`", "--set:1:1"]),
        ("runs.target=banana", &["for `runs.target`", "--set:1:13"]),
        ("factors.size=[16]", &["a message of 16 bytes", "--set:1:15"]),
        ("runs.min=99", &["`runs.min` is 99 and `runs.max` is 12", "--set:1:10", "::: study.toml:14:7"]),
    ];
    for (setting, said) in table {
        let errors = adjusted(STUDY, None, &[setting]).unwrap_err().to_string();
        for part in *said {
            assert!(errors.contains(part), "{part:?} is not said of {setting}, but\n{errors}");
        }
    }
}

#[test]
fn every_scale_of_the_quickstart_is_a_study() {
    let plain = adjusted(QUICKSTART, None, &[]).unwrap();
    assert_eq!(plain.cells.len(), 24);
    assert_eq!(adjusted(QUICKSTART, Some("quick"), &[]).unwrap(), plain);
    let standard = adjusted(QUICKSTART, Some("standard"), &[]).unwrap();
    assert_eq!((standard.rule.min, standard.rule.max), (10, 40));
    let paper = adjusted(QUICKSTART, Some("paper"), &[]).unwrap();
    assert_eq!(paper.probe(Probe::Stream).unwrap().length, Length::Packets(1_000_000));
    assert_eq!((paper.rule.min, paper.rule.max), (10, 40));
}

#[test]
fn text_without_quotes_is_named_as_such() {
    for (value, said) in [
        ("tcp", "expected \"tcp\""),
        ("infinite", "expected \"infinite\""),
        ("True", "expected true"),
        ("yes no", "expected \"yes no\""),
        ("", "expected a value"),
    ] {
        let errors = errors(&format!("title = {value}\n"));
        assert_eq!(errors.count(), 1, "{errors}");
        assert!(errors.to_string().contains(said), "{errors}");
    }
}

proptest! {
    /// Whatever is cut out of or put into a study, the answer is a study or errors that can be shown.
    #[test]
    fn no_text_makes_it_panic(at in 0..QUICKSTART.len(), cut in 0_usize..40, put in "[\\PC\n\"\\[\\]={}.]{0,8}") {
        let start = QUICKSTART.floor_char_boundary(at);
        let end = QUICKSTART.floor_char_boundary((at + cut).min(QUICKSTART.len())).max(start);
        let text = format!("{}{put}{}", &QUICKSTART[..start], &QUICKSTART[end..]);
        if let Err(errors) = adjusted(&text, Some("paper"), &[&put]) {
            prop_assert!(errors.count() > 0);
            prop_assert!(errors.to_string().starts_with("error: "));
        }
    }

    #[test]
    fn no_setting_makes_it_panic(setting in "([a-z.]{0,12}=)?\\PC{0,20}") {
        if let Err(errors) = adjusted(QUICKSTART, None, &[&setting]) {
            prop_assert!(errors.to_string().starts_with("error: "));
        }
    }
}
