//! A campaign inside a guest whose realtime clock is set again and again, by hours and years. Measured with the
//! monotonic clock, no figure shows it.

use crate::support::program::{Program, require_tool};
use crate::support::random::Random;
use serde_json::Value;
use stacklab_guests::image::Image;
use stacklab_model::{Delays, HostReport, Role, RunRecord, SplitMix64};
use std::fs;

/// The guest's folder, in the program's. The guest can write there, and read all else of this machine.
pub(super) const FOLDER: &str = "guest";
/// The shortest step, seconds; and more than any number of a run may be that was measured with the monotonic clock,
/// nanoseconds and bytes alike.
const MIN_S: u64 = 3600;
const MAX_FIGURE: f64 = 1e12;
/// Steps that are repeated until the campaign ends.
const STEPS: usize = 50;

/// Lines of a shell that boot the guest, in which the campaign is run. The guest's folder has the record then, and the
/// lines have the campaign's exit code and standard error.
pub(super) fn in_guest(program: &Program, campaign: &str, record: &str, seed: u64) -> String {
    require_tool("perl", "perl-base");
    let image = Image::find(&"uml-full".parse().unwrap()).unwrap_or_else(|error| panic!("{error}"));
    let work = program.work();
    let own = program.work().join(FOLDER);
    fs::create_dir(&own).unwrap();
    let script = format!(
        r#"#!/bin/sh
mount -t proc proc /proc && mount -t sysfs sysfs /sys && mount -t devtmpfs devtmpfs /dev
mount -t tmpfs -o mode=777 tmpfs /mnt && mkdir /mnt/out && mount -t hostfs -o {own} none /mnt/out
cd /mnt && cp {work}/study.toml . && export TMPDIR=/mnt
(
    {program} {campaign} --out {record} >out/stdout 2>out/stderr
    echo $? >code
) &
set --{steps}
until [ -e code ]; do
    sleep "$1" && date -s "$2" >>out/steps
    set -- "$@" "$1" "$2" && shift 2
done
cp -p {record}* code out
# reboot(2): RB_POWER_OFF.
exec perl -e 'syscall 169, 0xfee1dead, 0x28121969, 0x4321fedc, 0'
"#,
        own = own.display(),
        work = work.display(),
        program = program.path().display(),
        steps = steps(&mut Random(SplitMix64(seed))),
    );
    fs::write(own.join("init"), script).unwrap();
    fs::set_permissions(own.join("init"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    format!(
        "(cd {lib} && exec setpriv --pdeathsig KILL env LD_LIBRARY_PATH=. LD_PRELOAD={xstate} \
           {kernel} mem=512M seccomp=auto uml_dir={own} root=/dev/root rootfstype=hostfs rootflags=/ ro con=null con0=null,fd:1 ssl=null quiet loglevel=4 panic=-1 \
           init={own}/init </dev/null >{own}/console 2>&1)
         cp -p {own}/{record}* . 2>/dev/null; cat {own}/stderr >&2; exit \"$(cat {own}/code)\"",
        lib = image.file("lib").display(),
        kernel = image.file("kernel").display(),
        xstate = image.file("xstate.so").display(),
        own = own.display(),
    )
}

/// Seconds to wait and a time for `date`, again and again: forwards and backwards, and a step takes no other one back.
fn steps(random: &mut Random) -> String {
    let mut text = String::new();
    for _ in 0..STEPS {
        let wait_ms = 5 + random.below(60);
        let most = random.one_of(&[1, 86_400, 400 * 86_400]);
        let seconds = MIN_S + random.below(most);
        let way = random.one_of(&["", " ago"]);
        text += &format!(" 0.{wait_ms:03} '{seconds} seconds{way}'");
    }
    text
}

/// How many steps there were.
pub(super) fn stepped(program: &Program) -> usize {
    fs::read_to_string(program.work().join(FOLDER).join("steps")).unwrap_or_default().lines().count()
}

/// Fails if a number of a run is one that only the realtime clock can have made.
pub(super) fn shows_no_step(run: &RunRecord, reports: &[HostReport]) {
    let what = &run.trial;
    assert!(run.is_valid(), "{what}: {:?}", run.status);
    assert!((1..MAX_FIGURE as u64).contains(&run.wall_ns), "{what} took {} ns", run.wall_ns);
    for (metric, value) in run.values.iter() {
        let is_small = value.measured().is_none_or(|figure| (0.0..MAX_FIGURE).contains(&figure));
        assert!(is_small, "{what}: {metric} is {value:?}");
    }
    for report in reports {
        let json = serde_json::to_value(report).unwrap();
        small(&json, &mut vec![what.to_string(), report.role.to_string()]);
        for Delays { buckets, .. } in [&report.delays, &report.interface_delays].into_iter().flatten() {
            let most = buckets.percentile(1.0).unwrap();
            assert!((most as f64) < MAX_FIGURE, "{what}: a delay of {most} ns");
            // A reading of the clock between two interruptions may be off by more than a message's way: then the
            // message seems to arrive before it was sent, which counts as no delay.
            let zeros: u64 = buckets.0.iter().filter(|(delay, _)| *delay == 0).map(|(_, count)| count).sum();
            let all = buckets.count();
            assert!(zeros <= 1 + all / 1000, "{what}: {zeros} of {all} delays are zero");
        }
    }
    // Both hosts have one clock.
    let [sender, receiver] =
        [Role::Sender, Role::Receiver].map(|role| reports.iter().find(|report| report.role == role).unwrap());
    let sent_ns = sender.sent.first_ns;
    let arrived_ns = receiver.received.first_ns;
    assert!(sent_ns > 0 && arrived_ns >= sent_ns, "{what}: sent at {sent_ns} and there at {arrived_ns} ns");
}

/// Fails at a number that is too large.
fn small(json: &Value, place: &mut Vec<String>) {
    match json {
        Value::Number(number) => {
            assert!(number.as_f64().unwrap().abs() < MAX_FIGURE, "{} is {number}", place.join(", "));
        }
        Value::Array(all) => all.iter().for_each(|each| small(each, place)),
        Value::Object(all) => {
            for (name, each) in all {
                place.push(name.clone());
                small(each, place);
                place.pop();
            }
        }
        _ => {}
    }
}
