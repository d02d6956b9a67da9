//! `[probe.search]` and the queue of routers.

use crate::Plan;
use crate::parse::tests::{assert_mistakes, study, write_routed_study};
use stacklab_model::{
    Length, Metric, Pacing, Probe, RouterQueue, SearchDevice, SearchGoal, SearchSpec, SenderPriority,
};

/// A study between two routers that searches, with these factors and these keys of the search more.
fn searching(factors: &str, keys: &str) -> String {
    let stream = "[probe.stream]\nmetrics = [\"throughput\"]\nlength = { time = \"200ms\" }\n";
    let search = format!("[probe.search]\nmetrics = [\"load_at_loss\"]\n{keys}\n");
    let text = write_routed_study(factors).replace(stream, &search);
    text.replace("transport = [\"tcp\", \"udp\"]", "transport = [\"udp\"]")
}

fn spec(keys: &str) -> SearchSpec {
    let study = study(&searching("", keys));
    let probe = study.probe(Probe::Search).unwrap();
    let Pacing::Search(search) = probe.pacing else { panic!("{probe:?}") };
    assert_eq!(probe.length, Length::Time(search.slice_ns.unwrap_or(100_000_000)));
    search
}

fn queues(text: &str) -> Vec<Option<RouterQueue>> {
    study(text).cells.iter().map(|cell| cell.settings.router_queue).collect()
}

#[test]
fn reads_what_is_searched() {
    let none = SearchSpec {
        loss_ppm: 0,
        exceed_ppm: 500_000,
        slice_ns: None,
        highest: None,
        device: SearchDevice::Testbed,
        priority: SenderPriority::Realtime,
        goal: None,
        connections: None,
    };
    assert_eq!(spec(""), none);
    let all = "loss = \"0.5 %\"\nexceed = 0.25\nslice = \"200ms\"\nhighest = 100_000";
    let search = SearchSpec {
        loss_ppm: 5000,
        exceed_ppm: 250_000,
        slice_ns: Some(200_000_000),
        highest: Some(100_000.0),
        device: SearchDevice::Testbed,
        priority: SenderPriority::Realtime,
        goal: None,
        connections: None,
    };
    assert_eq!(spec(all), search);
}

#[test]
fn goal_is_that_of_rfc_2544_where_nothing_is_written() {
    const SECOND: u64 = 1_000_000_000;
    let rfc2544 = SearchGoal {
        loss_ppm: 0,
        exceed_ppm: 0,
        trial_ns: 60 * SECOND,
        sum_ns: 60 * SECOND,
        width_ppm: 10_000,
    };
    assert_eq!(spec("goal = {}").goal, Some(rfc2544));
    let written =
        "goal = { loss = \"0.5 %\", exceed = 0.5, trial = \"1s\", sum = \"21s\", width = \"0.5 %\" }";
    let goal = SearchGoal {
        loss_ppm: 5000,
        exceed_ppm: 500_000,
        trial_ns: SECOND,
        sum_ns: 21 * SECOND,
        width_ppm: 5000,
    };
    assert_eq!(spec(written).goal, Some(goal));
}

/// A stream at the load of a search.
const AT_SEARCH: &str = "[probe.paced]\nmetrics = [\"pdv\"]\nmessage_rate = \"search\"\n";

#[test]
fn searches_come_before_what_needs_them() {
    let study = study(&(searching("", "goal = {}") + AT_SEARCH));
    assert_eq!(study.probe(Probe::Paced).unwrap().pacing, Pacing::Searched);
    for seed in 0..20 {
        let block = Plan::new(&study, seed).block(0);
        let probes: Vec<Probe> = block.iter().map(|trial| trial.probe).collect();
        assert!(probes.is_sorted_by_key(|probe| *probe != Probe::Search), "{probes:?}");
        assert!(block.iter().map(|trial| trial.position).is_sorted());
    }
}

#[test]
fn names_what_a_goal_cannot_be() {
    let without_goal = searching("", "").replace("[\"load_at_loss\"]", "[\"lower_bound\"]");
    assert_mistakes(&[
        (without_goal, &["lower_bound needs a goal", "add goal = {} to [probe.search]"]),
        (
            searching("", "") + AT_SEARCH,
            &["no search of this study finds a load without loss", "needs probe.search.goal"],
        ),
        (
            searching("", "goal = { trial = \"2s\", sum = \"1s\" }"),
            &["all trials at a bound are shorter than one of them", "expected at least 2 s"],
        ),
        (searching("", "goal = { width = \"0 %\" }"), &["expected a share above 0"]),
        (
            searching("", "goal = { trial = \"1s\", sum = \"10min\" }"),
            &["a bound would need more than 50 trials", "expected at most 50 s"],
        ),
        (
            (searching("", "goal = {}") + AT_SEARCH).replace("[\"udp\"]", "[\"udp\", \"tcp\"]"),
            &["no search finds a load of IPv4 TCP 128 B", "a search is of UDP, sent by stacklab"],
        ),
        (searching("", "goal = { length = \"1s\" }"), &["there is no key `probe.search.goal.length`"]),
    ]);
}

#[test]
fn losses_at_common_loads_need_no_goal() {
    let losses = search_losses("");
    assert_eq!(study(&losses).probe(Probe::Search).unwrap().metrics, [Metric::FrameLossRate]);
}

fn search_losses(factors: &str) -> String {
    searching(factors, "").replace("[\"load_at_loss\"]", "[\"frame_loss_rate\"]")
}

#[test]
fn losses_are_compared_at_common_loads() {
    let by_mechanism =
        "[[comparison]]\nfactor = \"mechanism\"\nbaseline = \"native\"\ncandidate = \"nat44\"\n";
    let mechanisms = search_losses("mechanism = [\"native\", \"nat44\"]") + by_mechanism;
    let sizes: Vec<String> = (128..145).map(|size| size.to_string()).collect();
    let many = search_losses("").replace("size = [128]", &format!("size = [{}]", sizes.join(", ")));
    let by_size = "factor = \"size\"\nbaseline = 128\ncandidate = 144\n";
    let family = "factor = \"family\"\nbaseline = \"ipv4\"\ncandidate = \"ipv6\"\n";
    assert_mistakes(&[
        (
            search_losses("").replace("[blocks]\n", "[blocks]\nschedule = \"sequential\"\n"),
            &[
                "frame_loss_rate would be that of `ipv4` and `ipv6` at different loads",
                "set blocks.schedule = \"interleaved\"",
            ],
        ),
        (
            mechanisms.clone(),
            &[
                "frame_loss_rate would be that of `native` and `nat44` at different loads",
                "and these are in different trials",
                "give the comparison by mechanism `metrics` without frame_loss_rate",
            ],
        ),
        // More arms than a trial holds.
        (many.replace(family, by_size), &["that of `128` and `144` at different loads"]),
    ]);
    let both = mechanisms.replace("[\"frame_loss_rate\"]", "[\"load_at_loss\", \"frame_loss_rate\"]");
    study(&(both + "metrics = [\"load_at_loss\"]\n"));
    let alone = search_losses("");
    study(alone.split("[[comparison]]").next().unwrap());
}

#[test]
fn bursts_need_a_queue_that_is_not_the_senders() {
    let bursts = searching("", "").replace("[\"load_at_loss\"]", "[\"back_to_back\"]");
    let rate = "topology = \"routed\"\nrate = \"10 Mbit/s\"";
    let narrow = bursts.replace("topology = \"routed\"", rate);
    let wider = narrow.replace(rate, &format!("{rate}\nsender_link = {{ rate = \"100 Mbit/s\" }}"));
    for accepted in [&bursts, &wider] {
        assert!(study(accepted).probe(Probe::Search).is_some());
    }
    let link = narrow.replace("topology = \"routed\"\n", "").replace("router_queue", "io");
    for refused in [narrow, link] {
        assert_mistakes(&[(
            refused,
            &["bursts would wait in the queue of the sender's own link", "and a sender_link that is faster"],
        )]);
    }
}

#[test]
fn recovery_is_that_of_one_flow_through_a_queue() {
    let recovery = searching("", "").replace("[\"load_at_loss\"]", "[\"recovery_time\"]");
    assert!(study(&recovery).probe(Probe::Search).is_some());
    let rate = recovery.replace("topology = \"routed\"", "topology = \"routed\"\nrate = \"10 Mbit/s\"");
    let flows = searching("flows = [4]", "").replace("[\"load_at_loss\"]", "[\"recovery_time\"]");
    let clients = searching("clients = [1, 3]", "").replace("[\"load_at_loss\"]", "[\"recovery_time\"]");
    assert_mistakes(&[
        (rate, &["an overload would wait in the queue of the sender's own link"]),
        (clients, &["recovery_time is that of one flow", "leave clients out, or recovery_time"]),
        (flows, &["recovery_time is that of one flow", "leave flows out, or recovery_time"]),
    ]);
}

#[test]
fn device_may_be_the_path_between_machines() {
    let link = searching("", "device = \"path\"").replace("topology = \"routed\"", "mtu = 1500");
    let Pacing::Search(search) = study(&link).probe(Probe::Search).unwrap().pacing else { panic!("{link}") };
    assert_eq!(search.device, SearchDevice::Path);
}

#[test]
fn routers_of_a_search_have_threads() {
    let thread = Some(RouterQueue::Thread);
    assert_eq!(queues(&searching("", "")), [thread, thread]);
    let inline = Some(RouterQueue::Inline);
    assert_eq!(queues(&searching("router_queue = [\"inline\"]", "")), [inline, inline]);
    assert_eq!(queues(&searching("router_os = [\"uml\"]", "")), [None, None]);
    assert!(queues(&write_routed_study("")).iter().all(Option::is_none));
}

#[test]
fn names_what_a_search_cannot_do() {
    let link = searching("", "").replace("topology = \"routed\"", "mtu = 1500");
    assert_mistakes(&[
        (searching("", "loss = \"100 %\""), &["expected a share above 0 and below 1"]),
        (searching("", "highest = 5"), &["expected a number from 100"]),
        (
            searching("", "").replace("[\"udp\"]", "[\"tcp\"]"),
            &["probe search needs UDP", "add \"udp\" to factors.transport"],
        ),
        (link, &["the path has no device whose load could be searched", "topology = \"routed\""]),
        (searching("direction = [\"both\"]", ""), &["a search has one direction"]),
    ]);
}

#[test]
fn names_routers_that_have_no_threads() {
    let thread = "router_queue = [\"thread\"]";
    assert_mistakes(&[
        (
            write_routed_study(&format!("{thread}\nrouter_os = [\"uml\"]")),
            &["only routers that are namespaces have such a queue"],
        ),
        (
            write_routed_study(thread)
                .replace("topology = \"routed\"", "topology = \"routed\"\noffloads = true"),
            &["needs links without offloads"],
        ),
        (
            write_routed_study(thread).replace("topology = \"routed\"", "mtu = 1500"),
            &["`factors.router_queue` needs two routers"],
        ),
    ]);
}
