//! In a container without options: /proc/sys is read-only, parts of /proc are covered, and root may administer neither
//! the system nor its network. A control group may have a CPU quota.

use crate::support;
use crate::support::studies::TestStudy;

use serde_json::Value;
use std::time::Duration;
use support::leftovers::Scene;
use support::program::{Outcome, Program, code, count, invalid, record, require_root, require_tool};

fn study() -> TestStudy {
    TestStudy::new("in a container")
        .families()
        .transports(&["udp", "tcp"])
        .sizes(&[512])
        .stream(&["throughput"])
        .time("200ms")
        .echo(&["rtt"])
        .time("50ms")
        .schedule("sequential")
        .blocks(2)
        .compare_families()
}

/// Runs of both blocks.
const RUNS: u64 = 16;

/// As podman covers /proc: a new one could show more, so that the kernel refuses to mount it for who has not mounted
/// this one.
const COVER: &str = "set -e; mount --bind /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys; \
     mount -t tmpfs -o ro tmpfs /proc/bus; ";
const ROOT_OF_A_CONTAINER: &str = "setpriv --bounding-set=-sys_admin,-net_admin ";
const NOBODY: &str = "setpriv --reuid=65534 --regid=65534 --clear-groups ";

/// A program, its folder, and how it runs where /proc is covered.
struct Container {
    program: Program,
    user: &'static str,
}

impl Container {
    fn of(user: &'static str) -> Self {
        require_root();
        require_tool("setpriv", "util-linux");
        let program = Program::new();
        program.write("study.toml", study().text());
        if user == NOBODY {
            program.give_to(65534);
        }
        Container { program, user }
    }

    fn run(&self, args: &str) -> Outcome {
        // Without images of other systems: a testbed inside a guest needs no settings of the container.
        let script =
            format!("export STACKLAB_CACHE=$PWD/cache; {COVER}exec {}\"$STACKLAB\" {args}", self.user);
        Outcome::of(self.program.script(&["unshare", "--mount", "sh", "-c"], &script))
    }

    /// Runs the study. Returns its report's notes on what the hosts could not have.
    fn measure(&self) -> Vec<String> {
        let scene = Scene::now();
        let outcome = self.run("run study.toml --out x.stacklab").expect(code::DONE);
        scene.assert_restored(&self.program, &["study.toml", "x.stacklab"], Duration::from_secs(2));
        let path = self.program.work().join("x.stacklab");
        assert_eq!(invalid(&path), [""; 0], "{outcome}");
        assert_eq!(count(&path, "status = 'valid'"), RUNS);
        constraints(&self.program)
    }
}

fn constraints(program: &Program) -> Vec<String> {
    let report = program.run(&["report", "x.stacklab", "--format", "json"]).expect(code::DONE).stdout;
    let findings: Value = serde_json::from_str(&report).unwrap();
    let texts = findings["constraints"].as_array().into_iter().flatten();
    texts.map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// The settings that the record says each host could not have.
fn kept_settings(program: &Program) -> Vec<Value> {
    let record = record(&program.work().join("x.stacklab"));
    let mut query = record.prepare("SELECT facts FROM host ORDER BY id").unwrap();
    let rows = query.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let facts = rows.map(|facts| serde_json::from_str::<Value>(&facts.unwrap()).unwrap());
    facts.map(|facts| facts["kept_settings"].clone()).collect()
}

fn measures_with_defaults(user: &'static str) {
    let container = Container::of(user);
    let notes = container.measure();
    for (host, note) in ["sender", "receiver"].iter().zip(&notes) {
        let begins = format!("{host}: settings that could not be made in this container: ");
        assert!(
            note.starts_with(&begins)
                && note.contains("accept_dad")
                && note.ends_with("; the kernel's defaults were kept"),
            "{note}"
        );
        // It is 0 in every new namespace.
        assert!(!note.contains("disable_ipv6"), "{note}");
    }
    let kept = kept_settings(&container.program);
    assert_eq!((notes.len(), kept.len()), (2, 2), "{notes:?}");
    assert!(
        kept.iter().all(|kept| kept.as_array().unwrap().contains(&"tcp_no_metrics_save".into())),
        "{kept:?}"
    );
    let text = container.program.run(&["report", "x.stacklab", "--format", "text"]).expect(code::DONE).stdout;
    assert!(text.contains("sender, receiver: settings that could not be made"), "{text}");
}

#[test]
fn root_of_a_container_measures() {
    measures_with_defaults(ROOT_OF_A_CONTAINER);
}

#[test]
fn ordinary_user_of_a_container_measures() {
    measures_with_defaults(NOBODY);
}

#[test]
fn root_with_capabilities_makes_all_settings() {
    let container = Container::of("");
    assert_eq!(container.measure(), [""; 0]);
    assert_eq!(kept_settings(&container.program), [Value::Null, Value::Null]);
}

#[test]
fn doctor_names_what_a_container_lacks() {
    let container = Container::of(ROOT_OF_A_CONTAINER);
    let outcome = container.run("doctor").expect(code::DONE);
    for text in [
        "settings that cannot be made in this",
        "  no   forwarding",
        "unmask=ALL",
        "This machine can run studies",
    ] {
        assert!(outcome.stdout.contains(text), "`{text}` is not said by {outcome}");
    }
}

#[test]
fn routers_need_a_writable_proc_sys() {
    let container = Container::of(ROOT_OF_A_CONTAINER);
    let study = TestStudy::new("routed").topology("routed").family("ipv4").transports(&["udp"]).sizes(&[128]);
    container.program.write("study.toml", study.stream(&["loss"]).packets(10).blocks(2).text());
    container
        .run("run study.toml")
        .expect(code::TESTBED)
        .says(&["routers cannot forward packets here", "unmask=ALL"]);
}

/// Half a processor, in a group of the version that this machine uses for CPU time.
const WITH_QUOTA: &str = r#"set -e
mkdir groups
if grep -q '^[1-9][0-9]*:\([^:]*,\)\?cpu[,:]' /proc/self/cgroup; then
    options=$(sed -n 's/^[0-9]*:\(\([^:]*,\)\?cpu\(,[^:]*\)\?\):.*/\1/p' /proc/self/cgroup)
    mount -t cgroup -o "$options" none groups
    mkdir groups/stacklab-test-$$
    echo 100000 > groups/stacklab-test-$$/cpu.cfs_period_us
    echo 50000 > groups/stacklab-test-$$/cpu.cfs_quota_us
else
    mount -t cgroup2 none groups
    grep -q cpu groups/cgroup.subtree_control || echo +cpu > groups/cgroup.subtree_control
    mkdir groups/stacklab-test-$$
    echo '50000 100000' > groups/stacklab-test-$$/cpu.max
fi
trap 'rmdir groups/stacklab-test-$$; umount groups; rmdir groups' EXIT
sh -c "echo \$\$ > groups/stacklab-test-$$/cgroup.procs; \"$STACKLAB\" doctor; exec \"$STACKLAB\" run study.toml --out x.stacklab"
"#;

#[test]
fn quota_of_a_control_group_is_reported() {
    let container = Container::of("");
    let program = &container.program;
    let outcome =
        Outcome::of(program.script(&["unshare", "--mount", "sh", "-c"], WITH_QUOTA)).expect(code::DONE);
    assert!(outcome.stdout.contains("Quota: this container may use 0.5 of "), "{outcome}");
    let notes = constraints(program);
    assert_eq!(notes.len(), 2, "{notes:?}");
    for note in &notes {
        let (_, held_back) = note.split_once(" processors and was held back ").unwrap();
        let seconds: f64 = held_back.split(' ').next().unwrap().parse().unwrap();
        assert!(note.contains("this container may use 0.5 of ") && seconds > 0.0, "{note}");
    }
    let record = record(&program.work().join("x.stacklab"));
    let advice = "SELECT DISTINCT advice FROM warning WHERE code = 'cpu_quota'";
    let advice: String = record.query_row(advice, [], |row| row.get(0)).unwrap();
    assert_eq!(advice, "raise the container's CPU quota", "{outcome}");
}
