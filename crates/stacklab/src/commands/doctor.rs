//! `stacklab doctor`.

use crate::failure::{Failure, TESTBED};
use crate::output::{print_text, width};
use clap::Args;
use guest::{describe_guest, describe_use_of_tun, find_guests};
use serde_json::{Value, json};
use stacklab_explain::{
    GET_USER_EMULATOR, KERNEL, USER_EMULATOR, check_emulator, check_sampling, check_user_emulator,
};
use stacklab_guests::{QUICKEST_IMAGE, emulator, image, kinds};
use stacklab_model::{HostFacts, NoiseFloor, Spread, System, count, print_duration};
use stacklab_testbed::{Ability, Privilege, abilities, enter, find, kept_settings, services};
use stacklab_traffic::host::cpu_limit;
use std::fmt::Write;

mod guest;

/// What exact counts require, and how to get it.
const EMULATOR: &str = "qemu-system-x86_64";
const GET_EMULATOR: &str = "sudo apt-get install --no-install-recommends qemu-system-x86 (QEMU 6 to 11.1)";
const COUNTING: &str =
    "instructions per message by kernel function, emulated by QEMU 6 to 11.1, without root";

const COUNTING_PROGRAMS: &str =
    "instructions per request of a study's programs, in user space, emulated by QEMU 7 to 11.0";

/// What every study requires.
const NEEDED: [&str; 4] = ["network namespace", "ipv6", "veth", "offload control"];

#[derive(Debug, Args)]
pub(crate) struct DoctorOptions {
    /// Also say why something is missing and what it is for, with the kernel's error
    #[arg(short = 'v', long)]
    pub verbose: bool,
    /// Print a JSON object, with all of it
    #[arg(long, conflicts_with = "verbose")]
    pub json: bool,
}

/// What was found out about this machine.
struct Diagnosis {
    is_root: bool,
    facts: HostFacts,
    /// What a container limits, a sentence each.
    limits: Vec<String>,
    groups: Vec<AbilityGroup>,
    /// Where a testbed with routers runs if this kernel lacks what it needs.
    guest: Option<String>,
}

/// Abilities under one heading, which its key names in JSON.
struct AbilityGroup {
    key: &'static str,
    heading: &'static str,
    abilities: Vec<Ability>,
}

impl AbilityGroup {
    fn new(key: &'static str, heading: &'static str, abilities: Vec<Ability>) -> Self {
        AbilityGroup { key, heading, abilities }
    }
}

pub(crate) fn doctor(options: &DoctorOptions) -> Result<(), Failure> {
    let diagnosis = Diagnosis::make()?;
    let text = match options.json {
        true => format!("{:#}\n", diagnosis.to_json()),
        false => fit(&diagnosis.to_text(options.verbose), width().tables),
    };
    print_text(&text)?;
    if diagnosis.can_run_studies() {
        return Ok(());
    }
    Err(Failure::new(TESTBED, "this machine cannot run a study yet: the list above says what is missing"))
}

impl Diagnosis {
    fn make() -> Result<Self, Failure> {
        let is_root = enter()? == Privilege::Root;
        let facts = stacklab_traffic::agent::facts();
        let testbeds = abilities();
        let lacks_some =
            testbeds.iter().any(|ability| ability.result.is_err() && !NEEDED.contains(&ability.name));
        let needs_guest = lacks_some && image::check_architecture().is_ok();
        let guest = needs_guest
            .then(|| describe_guest(&find_guests(), emulator().is_ok()) + describe_use_of_tun(&testbeds));
        let groups = vec![
            AbilityGroup::new("testbeds", "Testbeds", testbeds),
            AbilityGroup::new("hosts", "Other kinds of hosts (factors.os, factors.router_os)", kinds()),
            AbilityGroup::new("services", "Services on a host (factors.services)", services::abilities()),
            AbilityGroup::new("sampling", "Sampling the processors (stacklab explain)", vec![try_sampling()]),
            AbilityGroup::new(
                "counting",
                "Counting instructions (stacklab explain --exact)",
                vec![try_counting(), try_counting_programs()],
            ),
        ];
        Ok(Diagnosis { is_root, limits: list_limits(&facts), facts, groups, guest })
    }

    fn can_run_studies(&self) -> bool {
        let all = self.groups.iter().flat_map(|group| &group.abilities);
        all.filter(|ability| NEEDED.contains(&ability.name)).all(|ability| ability.result.is_ok())
    }

    fn to_text(&self, verbose: bool) -> String {
        let facts = &self.facts;
        let mut text = match self.is_root {
            true => "Root: testbeds are built directly.\n".to_owned(),
            false => "Not root: testbeds are built in a user namespace.\n".to_owned(),
        };
        let _ = writeln!(
            text,
            "{} {} {}, {}, {}, clock {}{}\n",
            facts.os,
            facts.kernel,
            facts.machine,
            facts.cpu_model,
            count(facts.cores, "core"),
            facts.clock_source.as_deref().unwrap_or("unknown"),
            if facts.virtualised { ", virtualised" } else { "" }
        );
        for limit in &self.limits {
            let _ = writeln!(text, "{limit}\n");
        }
        for (number, group) in self.groups.iter().enumerate() {
            // The first group is what the whole list is about.
            if number > 0 {
                let _ = writeln!(text, "\n{}", group.heading);
            }
            text += &list(&group.abilities, verbose);
            if number == 0 {
                text += self.guest.as_deref().unwrap_or_default();
            }
        }
        text += "\nSockets and clocks of this host\n";
        for (name, result) in &facts.abilities {
            let _ = match result.as_str() {
                "yes" => writeln!(text, "  yes  {name}"),
                reason => writeln!(text, "  no   {name}: {reason}"),
            };
        }
        if let Some(floor) = &facts.noise {
            let _ = write!(text, "\n{}", noise(floor));
        }
        let mut all = self.groups.iter().flat_map(|group| &group.abilities);
        if !verbose && all.any(|ability| ability.result.is_err()) {
            text += "\nWhy something is missing: stacklab doctor --verbose\n";
        }
        if self.can_run_studies() {
            text += "\nThis machine can run studies: stacklab run\n";
        }
        text
    }

    fn to_json(&self) -> Value {
        let groups = self.groups.iter().map(|group| {
            let rows = group.abilities.iter().map(ability_json).collect();
            (group.key.to_owned(), rows)
        });
        json!({
            "format_version": FORMAT_VERSION,
            "can_run_studies": self.can_run_studies(),
            "root": self.is_root,
            "limits": self.limits,
            "guest": self.guest.as_deref().map(str::trim_end),
            "abilities": groups.collect::<serde_json::Map<String, Value>>(),
            "host": self.facts,
        })
    }
}

const FORMAT_VERSION: u32 = 1;

fn ability_json(ability: &Ability) -> Value {
    let is_here = ability.result.is_ok();
    json!({
        "name": ability.name,
        "what_for": ability.what_for,
        "available": is_here,
        "reason": ability.result.as_ref().err(),
        "remedy": (!is_here).then_some(ability.remedy),
    })
}

/// What a container keeps from this program.
fn list_limits(facts: &HostFacts) -> Vec<String> {
    let mut limits = Vec::new();
    if let Some((quota, limit)) = facts.cpu_quota.zip(cpu_limit()) {
        let held_back = quota.describe(facts.cores, limit.throttled_us);
        limits.push(format!("Quota: {held_back} so far; raise its quota for narrower intervals."));
    }
    if let Ok(kept) = kept_settings()
        && !kept.is_empty()
    {
        let kept = kept.join(", ");
        limits.push(format!(
            "Read-only /proc/sys: settings that cannot be made in this container: {kept}; testbeds keep the kernel's \
             defaults."
        ));
    }
    limits
}

/// Breaks lines at the terminal's width. What follows the first line of an item stands below its text, which begins
/// behind the last run of spaces within the first columns.
fn fit(text: &str, columns: usize) -> String {
    /// Where the text of an ability begins.
    const TEXT: usize = 26;
    let mut fitted = String::new();
    for line in text.lines() {
        let head = &line[..line.char_indices().nth(TEXT).map_or(line.len(), |(at, _)| at)];
        let hang = head.rfind("  ").map_or(0, |at| at + 2);
        let mut column = 0;
        let mut rest = line;
        while rest.chars().count() > columns - column {
            let room = rest.char_indices().nth(columns - column).map_or(rest.len(), |(at, _)| at);
            // Not within the columns before the text.
            let from = if column == 0 { hang } else { 0 };
            let Some(at) = rest[..room].rfind(' ').filter(|at| *at > from) else { break };
            fitted += rest[..at].trim_end();
            fitted += "\n";
            column = hang.min(columns / 2);
            fitted += &" ".repeat(column);
            rest = rest[at..].trim_start();
        }
        fitted += rest;
        fitted += "\n";
    }
    fitted
}

fn try_sampling() -> Ability {
    Ability {
        name: "kernel functions",
        what_for: "of namespaces' hosts; not those of guests",
        result: check_sampling().map(drop).map_err(|reason| reason.to_string()),
        remedy: "run as root (sudo), or with CAP_PERFMON and CAP_SYSLOG, on hardware that is not shared",
    }
}

fn try_counting() -> Ability {
    let tried = check_counting();
    let remedy = tried.as_ref().err().map_or(QUICKEST_IMAGE, |lack| lack.remedy);
    Ability { name: KERNEL, what_for: COUNTING, result: tried.map_err(|lack| lack.reason), remedy }
}

fn try_counting_programs() -> Ability {
    let result = match find(USER_EMULATOR, GET_USER_EMULATOR) {
        Ok(qemu) => check_user_emulator(&qemu).map(drop),
        Err(_) => Err(format!("there is no program `{USER_EMULATOR}`")),
    };
    Ability { name: "programs", what_for: COUNTING_PROGRAMS, result, remedy: GET_USER_EMULATOR }
}

/// What keeps this machine from counting instructions.
struct Lack {
    reason: String,
    remedy: &'static str,
}

fn check_counting() -> Result<(), Lack> {
    image::check_architecture()
        .map_err(|error| Lack { reason: error.to_string(), remedy: "an x86-64 machine" })?;
    let Ok(qemu) = find(EMULATOR, GET_EMULATOR) else {
        return Err(Lack { reason: format!("there is no program `{EMULATOR}`"), remedy: GET_EMULATOR });
    };
    check_emulator(&qemu).map_err(|reason| Lack { reason, remedy: GET_EMULATOR })?;
    let system = System::Linux(KERNEL.trim_start_matches("linux-").to_owned());
    match image::Image::find(&system) {
        Ok(_) => Ok(()),
        Err(error) => Err(Lack { reason: error.to_string(), remedy: QUICKEST_IMAGE }),
    }
}

/// A line for each ability: what it is for, or how to get it. With `verbose`, the reason too.
fn list(abilities: &[Ability], verbose: bool) -> String {
    let mut text = String::new();
    for ability in abilities {
        let _ = match &ability.result {
            Ok(()) => writeln!(text, "  yes  {:<18} {}", ability.name, ability.what_for),
            Err(reason) if verbose => writeln!(
                text,
                "  no   {:<18} {}\n       {:<18} {reason}\n       {:<18} to get it: {}",
                ability.name, ability.what_for, "", "", ability.remedy
            ),
            Err(_) => writeln!(text, "  no   {:<18} {}", ability.name, ability.remedy),
        };
    }
    text
}

/// A table of the noise floor, with explanations.
fn noise(floor: &NoiseFloor) -> String {
    let mut rows = vec![
        ("reading the clock".to_owned(), [print_duration(floor.clock_read_ns), "-".to_owned()]),
        ("step of the clock".to_owned(), [print_duration(floor.clock_step_ns), "-".to_owned()]),
        ("sleep of 0.5 ms, late by".to_owned(), write_spread(floor.timer_late)),
        ("kernel's arrival time to receive".to_owned(), write_spread(floor.arrival_stamp)),
    ];
    for echo in &floor.echoes {
        let name = format!("loopback echo, {} {}, 64 B", echo.transport, echo.family);
        rows.push((name, write_spread(Some(echo.round_trip))));
    }
    let mut text = format!("{:<34} {:>10} {:>10}\n", "Measurement noise floor", "median", "p99");
    for (name, [median, p99]) in rows {
        let _ = writeln!(text, "  {name:<32} {median:>10} {p99:>10}");
    }
    text + "Single delays and scheduled send times are no more accurate than this; smaller differences are visible\n\
            only in means of many messages.\n"
}

/// Median and 99th percentile.
fn write_spread(spread: Option<Spread>) -> [String; 2] {
    match spread {
        Some(Spread { median_ns, p99_ns }) => [median_ns, p99_ns].map(print_duration),
        None => ["-".to_owned(), "-".to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_explain::supported_emulators;
    use stacklab_model::{EchoFloor, Family, Transport};

    fn diagnosis(result: Result<(), String>) -> Diagnosis {
        let remedy = "chmod 666 /dev/net/tun";
        let tun = Ability { name: "tun", what_for: "translators", result, remedy };
        let veth = Ability { name: "veth", what_for: "links", result: Ok(()), remedy: "" };
        let abilities = vec![tun, veth];
        let groups = vec![AbilityGroup { key: "testbeds", heading: "Testbeds", abilities }];
        let facts = stacklab_traffic::agent::facts();
        Diagnosis { is_root: false, facts, limits: Vec::new(), groups, guest: None }
    }

    #[test]
    fn what_is_missing_has_one_line_or_its_reason_too() {
        let diagnosis = diagnosis(Err("create a tun device: Permission denied".to_owned()));
        let [short, long] = [false, true].map(|verbose| diagnosis.to_text(verbose));
        let line = "  no   tun                chmod 666 /dev/net/tun\n  yes  veth ";
        assert!(short.contains(line) && !short.contains("denied"), "{short}");
        assert!(short.contains("doctor --verbose") && !long.contains("doctor --verbose"));
        assert!(long.contains("denied\n") && long.contains("to get it: chmod"), "{long}");
    }

    #[test]
    fn json_has_every_ability() {
        let json = diagnosis(Err("denied".to_owned())).to_json();
        let tun = &json["abilities"]["testbeds"][0];
        assert_eq!(tun["available"], false);
        assert_eq!([&tun["reason"], &tun["remedy"]], ["denied", "chmod 666 /dev/net/tun"]);
        assert_eq!(json["abilities"]["testbeds"][1]["remedy"], Value::Null);
        assert!(json["can_run_studies"] == true && json["host"]["cores"].is_number(), "{json}");
    }

    #[test]
    fn names_the_emulators_that_can_count() {
        for text in [GET_EMULATOR, COUNTING] {
            assert!(text.contains(&supported_emulators()), "{text}: {}", supported_emulators());
        }
    }

    #[test]
    fn lines_fit_the_terminal() {
        let reason = "the kernel has no module that delays packets, as user-mode Linux has";
        let text = format!("Heading\n  no   {:<18} {reason}\n  yes  veth               links\n", "netem");
        let fitted = fit(&text, 60);
        assert!(fitted.lines().all(|line| line.chars().count() <= 60), "{fitted}");
        let below = fitted.lines().nth(2).unwrap();
        assert_eq!(below.len() - below.trim_start().len(), 26, "{fitted}");
        let words: Vec<&str> = text.split_whitespace().collect();
        assert_eq!(fitted.split_whitespace().collect::<Vec<_>>(), words);
        assert_eq!(fit(&text, usize::MAX), text);
        assert_eq!(fit("indivisible\n", 4), "indivisible\n");
    }

    #[test]
    fn the_noise_floor_is_a_table_with_units() {
        let round_trip = Spread { median_ns: 6_120, p99_ns: 9_870 };
        let floor = NoiseFloor {
            clock_read_ns: 24,
            clock_read_least_ns: 22,
            clock_step_ns: 1,
            timer_late: None,
            arrival_stamp: Some(Spread { median_ns: 950, p99_ns: 1_800 }),
            echoes: vec![EchoFloor { transport: Transport::Udp, family: Family::Ipv6, round_trip }],
        };
        let text = noise(&floor);
        let expected = "\
Measurement noise floor                median        p99
  reading the clock                     24 ns          -
  step of the clock                      1 ns          -
  sleep of 0.5 ms, late by                  -          -
  kernel's arrival time to receive     950 ns     1.8 us
  loopback echo, udp ipv6, 64 B        6.1 us     9.9 us
Single delays and";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.lines().all(|line| line.len() <= 110), "{text}");
    }
}
