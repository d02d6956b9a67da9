//! Real daemons on a receiver, with queries from the sender.
//!
//! The tests need root and the daemons' programs (`scripts/setup test-all`). They fail if anything is missing.

use stacklab_model::{LinkConfig, Service, Services};
use stacklab_testbed::{Testbed, services};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

const PLAIN: LinkConfig = LinkConfig { rate: None, mtu: 1500, offloads: false };
const ALL: &str = "dns+dhcp+directory";

fn serve_daemons(text: &str) -> Testbed {
    let mut testbed =
        Testbed::build(&PLAIN, Path::new("cat"), &[""; 0]).unwrap_or_else(|error| panic!("{error}"));
    testbed.serve(&of(text)).unwrap_or_else(|error| panic!("{error}"));
    testbed
}

fn of(text: &str) -> Services {
    text.parse().unwrap()
}

fn namespace_of(pid: u32) -> PathBuf {
    fs::read_link(format!("/proc/{pid}/ns/net")).unwrap()
}

/// Processes and threads in a namespace, and files that hold it open.
fn holders(namespace: &Path) -> usize {
    let mut count = 0;
    for process in list_entries("/proc".into()).filter(|path| path.join("task").exists()) {
        let threads = list_entries(process.join("task")).map(|thread| thread.join("ns/net"));
        for path in threads.chain(list_entries(process.join("fd"))) {
            if fs::read_link(path).is_ok_and(|target| target == namespace) {
                count += 1;
            }
        }
    }
    count
}

fn list_entries(path: PathBuf) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// The folders of this process's services.
fn folders() -> Vec<PathBuf> {
    let own = format!("stacklab-guests-{}-", std::process::id());
    let entries = fs::read_dir(std::env::temp_dir()).unwrap().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&own))
        .map(|entry| entry.path())
        .collect()
}

#[test]
fn services_answer_both_families_and_only_when_asked() {
    let mut testbed = serve_daemons(ALL);
    let receiver = testbed.hosts()[1].pid();
    let sender = testbed.hosts()[0].pid();
    let serving = testbed.serving().unwrap();
    let names: Vec<String> = serving
        .pids()
        .iter()
        .map(|pid| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap().trim().to_owned())
        .collect();
    assert_eq!(names, ["dnsmasq", "slapd"]);
    for pid in serving.pids() {
        assert_eq!(namespace_of(pid), namespace_of(receiver));
    }
    let said = serving.describe();
    assert!(said.contains("dnsmasq 2.") && said.contains("slapd 2."), "{said}");
    for _ in 0..2 {
        let began = Instant::now();
        serving.begin();
        sleep(Duration::from_millis(1000));
        let asked = serving.end().unwrap();
        let most = began.elapsed().as_millis() as u64 / 100 + 1;
        assert_eq!(asked.keys().copied().collect::<Vec<_>>(), Service::ALL);
        for (service, count) in &asked {
            // One query each tenth of a second, in both families; a loaded machine sends fewer, or sleeps longer.
            assert!((4..=most).contains(&count.asked), "{service}: {count:?} of {most}");
            assert_eq!(count.answered, count.asked, "{service}");
        }
    }
    // Without queries the link must be silent, otherwise the trials of other testbeds would be disturbed.
    let sent = || fs::read_to_string(format!("/proc/{sender}/net/dev")).unwrap();
    sleep(Duration::from_millis(200));
    let before = sent();
    sleep(Duration::from_millis(500));
    assert_eq!(sent(), before);
}

#[test]
fn only_the_services_that_are_wanted_run() {
    let mut testbed = serve_daemons("directory");
    let serving = testbed.serving().unwrap();
    assert_eq!(serving.pids().len(), 1);
    serving.begin();
    sleep(Duration::from_millis(300));
    let asked = serving.end().unwrap();
    assert_eq!(asked.keys().copied().collect::<Vec<_>>(), [Service::Directory]);
    let mut none = serve_daemons("none");
    assert!(none.serving().is_none());
    for text in ["dns", "dhcp"] {
        assert_eq!(serve_daemons(text).serving().unwrap().pids().len(), 1);
    }
}

#[test]
fn nothing_is_left_when_the_testbed_goes() {
    let before = folders();
    let mut testbed = serve_daemons(ALL);
    let pids = testbed.serving().unwrap().pids();
    let namespaces = testbed.hosts().each_ref().map(|host| namespace_of(host.pid()));
    assert_eq!(folders().len(), before.len() + 1);
    testbed.serving().unwrap().begin();
    drop(testbed);
    assert_eq!(folders(), before);
    for pid in pids {
        assert!(!Path::new(&format!("/proc/{pid}")).exists(), "{pid}");
    }
    for namespace in namespaces {
        assert_eq!(holders(&namespace), 0);
    }
}

#[test]
fn a_daemon_that_ends_is_an_error_that_names_it() {
    let mut testbed = serve_daemons(ALL);
    let serving = testbed.serving().unwrap();
    let slapd = serving.pids()[1];
    serving.begin();
    let killed =
        std::process::Command::new("sh").args(["-c", &format!("kill -s KILL {slapd}")]).status().unwrap();
    assert!(killed.success());
    let until = Instant::now() + Duration::from_secs(2);
    let error = loop {
        serving.begin();
        match serving.end() {
            Err(error) => break error.to_string(),
            Ok(_) => assert!(Instant::now() < until, "nobody has noticed"),
        }
    };
    for part in ["slapd 2.", "ended (signal: 9", "slapd starting", "apt-get install slapd"] {
        assert!(error.contains(part), "`{part}` is missing in: {error}");
    }
}

#[test]
fn failing_service_is_an_error_that_tells_its_output() {
    let mut testbed = Testbed::build(&PLAIN, Path::new("cat"), &[""; 0]).unwrap();
    let [_, receiver] = testbed.hosts();
    let address = receiver.address(stacklab_model::Family::Ipv4);
    let taken =
        stacklab_testbed::in_namespace(receiver.pid(), || std::net::UdpSocket::bind((address, 53)).unwrap());
    let error = testbed.serve(&of("dns")).unwrap_err().to_string();
    drop(taken);
    for part in
        ["dnsmasq 2.", "on the receiver ended", "Address already in use", "apt-get install dnsmasq-base"]
    {
        assert!(error.contains(part), "`{part}` is missing in: {error}");
    }
    assert!(testbed.serving().is_none());
}

#[test]
fn every_program_is_found_or_said_how_to_get() {
    let found = services::abilities();
    assert_eq!(found.iter().map(|ability| ability.name).collect::<Vec<_>>(), ["dnsmasq", "slapd"]);
    for ability in found {
        assert_eq!(ability.result, Ok(()), "{}: {}", ability.name, ability.remedy);
    }
    services::check(&of(ALL)).unwrap();
}
