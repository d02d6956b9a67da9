//! The settings of the network namespace that the program is started in stay as they were, wherever it is started.

use crate::support;

use support::program::{Outcome, Program, require_root, require_tool};

/// Runs `$RUN` in a network namespace of its own, and prints its settings before and after, and how the run ended.
/// Small process IDs are taken here, so that one of an inner PID namespace is another process's here.
const STARTER: &str = r#"
ip link set lo up
for i in $(seq 60); do sleep 60 & done
look() { grep -rs . /proc/sys/net/ipv4/conf /proc/sys/net/ipv6/conf /proc/sys/net/ipv4/tcp_no_metrics_save /proc/sys/net/ipv6/flowlabel_consistency \
    /proc/sys/net/ipv4/ip_forward | grep -v stable_secret | sort; ip -o link; ip -o address; }
look >before
set +e
RUN >out 2>err
code=$?
look >after
kill $(jobs -p)
cmp before after || { diff before after; exit 99; }
tail -2 err >&2
exit $code
"#;
const RUN: &str = "\"$STACKLAB\" run quickstart --set blocks.min=2 --set blocks.max=2 --set factors.size=[1408] --out a.stacklab";

/// Starts it by a command before it, and gives how that ended.
fn started(before: &str) -> Outcome {
    require_root();
    require_tool("unshare", "util-linux");
    require_tool("setpriv", "util-linux");
    let program = Program::new();
    let namespace =
        ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "--mount", "sh", "-c"];
    let script =
        format!("cd {}\n{}", program.work().display(), STARTER.replace("RUN", &format!("{before} {RUN}")));
    let outcome = Outcome::of(program.script(&namespace, &script));
    assert_ne!(outcome.status.code(), Some(99), "the starter's settings were changed: {outcome}");
    outcome
}

#[test]
fn inner_pid_namespace_with_outer_proc_is_measured_in() {
    started("unshare --pid --fork").expect(support::program::code::DONE);
}

#[test]
fn a_sys_that_cannot_be_written_changes_nothing() {
    started("mount -o remount,bind,ro /sys &&").expect(support::program::code::DONE);
}

#[test]
fn root_without_capabilities_is_told_what_to_do() {
    let outcome = started("setpriv --bounding-set=-all --inh-caps=-all --ambient-caps=-all");
    // A kernel may let anybody make a user namespace, or nobody.
    if outcome.status.code() != Some(support::program::code::DONE) {
        outcome.says(&["run as root"]);
    }
}
