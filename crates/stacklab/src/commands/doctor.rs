//! `stacklab doctor`.

use crate::failure::{Failure, TESTBED};
use crate::output::{print_text, width};
use stacklab_explain::{KERNEL, check_emulator, check_sampling};
use stacklab_guests::{image, kinds};
use stacklab_model::{NoiseFloor, Spread, System, print_duration};
use stacklab_testbed::{Ability, Privilege, abilities, enter, find, kept_settings, services};
use stacklab_traffic::host::cpu_limit;
use std::fmt::Write;

/// What exact counts require, and how to get it.
const EMULATOR: &str = "qemu-system-x86_64";
const GET_EMULATOR: &str = "sudo apt-get install --no-install-recommends qemu-system-x86 (QEMU 6 to 11.1)";
const COUNTING: &str =
    "instructions per message by kernel function, emulated by QEMU 6 to 11.1, without root";
const GET_KERNEL: &str = "stacklab image get linux-6.1";

/// What every study requires.
const NEEDED: [&str; 4] = ["network namespace", "ipv6", "veth", "offload control"];

pub(crate) fn doctor() -> Result<(), Failure> {
    let privilege = enter()?;
    let mut text = match privilege {
        Privilege::Root => "Root: testbeds are built directly.\n".to_owned(),
        Privilege::UserNamespace => "Not root: testbeds are built in a user namespace.\n".to_owned(),
    };
    let facts = stacklab_traffic::agent::facts();
    let _ = writeln!(
        text,
        "{} {} {}, {}, {} cores, clock {}{}\n",
        facts.os,
        facts.kernel,
        facts.machine,
        facts.cpu_model,
        facts.cores,
        facts.clock_source.as_deref().unwrap_or("unknown"),
        if facts.virtualised { ", virtualised" } else { "" }
    );
    if let Some((quota, limit)) = facts.cpu_quota.zip(cpu_limit()) {
        let held_back = quota.describe(facts.cores, limit.throttled_us);
        let _ = writeln!(text, "Quota: {held_back} so far; raise its quota for narrower intervals.\n");
    }
    if let Ok(kept) = kept_settings()
        && !kept.is_empty()
    {
        let kept = kept.join(", ");
        let _ = writeln!(
            text,
            "Read-only /proc/sys: settings that cannot be made in this container: {kept}; testbeds keep the kernel's \
             defaults.\n"
        );
    }
    let found = abilities();
    text += &listed(&found);
    let is_missing = |ability: &&Ability| ability.result.is_err() && !NEEDED.contains(&ability.name);
    if found.iter().any(|ability| is_missing(&ability)) && image::check_architecture().is_ok() {
        text += &guest(&image::built());
    }
    text += "\nOther kinds of hosts (factors.os, factors.router_os)\n";
    text += &listed(&kinds());
    text += "\nServices on a host (factors.services)\n";
    text += &listed(&services::abilities());
    text += "\nSampling the processors (stacklab explain)\n";
    let _ = match check_sampling() {
        Ok(event) => {
            writeln!(text, "  yes  kernel functions of namespaces' hosts, by {event}; not those of guests")
        }
        Err(reason) => writeln!(text, "  no   kernel functions: {reason}"),
    };
    text += "\nCounting instructions (stacklab explain --exact)\n";
    text += &listed(&[counting()]);
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
    let unable = found.iter().any(|ability| NEEDED.contains(&ability.name) && ability.result.is_err());
    if !unable {
        text += "\nThis machine can run studies: stacklab run\n";
    }
    print_text(&fit(&text, width().tables))?;
    if unable {
        Err(Failure::new(TESTBED, "this machine cannot run a study yet: the list above says what is missing"))
    } else {
        Ok(())
    }
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
        let (mut column, mut rest) = (0, line);
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

/// Where a testbed with routers runs if this kernel lacks what it needs.
fn guest(built: &[System]) -> String {
    let is_here = built.contains(&System::OwnUml("full".to_owned()));
    let place = if is_here { "which is here" } else { "to get it: stacklab image build uml-full" };
    format!(
        "What is missing for routed testbeds (mechanisms, delay, loss) is in the guest uml-full, {place}.\n\
         `run` and `lab up` use it where this kernel lacks a module.\n"
    )
}

fn counting() -> Ability {
    let system = System::Linux(KERNEL.trim_start_matches("linux-").to_owned());
    let kernel = || image::Image::find(&system).map(drop).map_err(|error| (error.to_string(), GET_KERNEL));
    let unable = image::check_architecture().map_err(|error| (error.to_string(), "an x86-64 machine"));
    let checked = unable.and_then(|()| match find(EMULATOR, GET_EMULATOR) {
        Err(_) => Err((format!("there is no program `{EMULATOR}`"), GET_EMULATOR)),
        Ok(qemu) => check_emulator(&qemu).map_err(|reason| (reason, GET_EMULATOR)).and_then(|_| kernel()),
    });
    let remedy = checked.as_ref().err().map_or(GET_KERNEL, |(_, remedy)| remedy);
    Ability { name: KERNEL, what_for: COUNTING, result: checked.map_err(|(reason, _)| reason), remedy }
}

fn listed(abilities: &[Ability]) -> String {
    let mut text = String::new();
    for ability in abilities {
        let _ = match &ability.result {
            Ok(()) => writeln!(text, "  yes  {:<18} {}", ability.name, ability.what_for),
            Err(reason) => writeln!(
                text,
                "  no   {:<18} {}\n       {:<18} {reason}\n       {:<18} to get it: {}",
                ability.name, ability.what_for, "", "", ability.remedy
            ),
        };
    }
    text
}

/// A table of the noise floor, with explanations.
fn noise(floor: &NoiseFloor) -> String {
    let none = || ["-".to_owned(), "-".to_owned()];
    let spread = |spread: Option<Spread>| {
        spread.map_or_else(none, |spread| [spread.median_ns, spread.p99_ns].map(print_duration))
    };
    let mut rows = vec![
        ("reading the clock".to_owned(), [print_duration(floor.clock_read_ns), "-".to_owned()]),
        ("step of the clock".to_owned(), [print_duration(floor.clock_step_ns), "-".to_owned()]),
        ("sleep of 0.5 ms, late by".to_owned(), spread(floor.timer_late)),
        ("kernel's arrival time to receive".to_owned(), spread(floor.arrival_stamp)),
    ];
    for echo in &floor.echoes {
        let name = format!("loopback echo, {} {}, 64 B", echo.transport, echo.family);
        rows.push((name, spread(Some(echo.round_trip))));
    }
    let mut text = format!("{:<34} {:>10} {:>10}\n", "Measurement noise floor", "median", "p99");
    for (name, [median, p99]) in rows {
        let _ = writeln!(text, "  {name:<32} {median:>10} {p99:>10}");
    }
    text + "Single delays and scheduled send times are no more accurate than this; smaller differences are visible\n\
            only in means of many messages.\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_explain::supported_emulators;
    use stacklab_model::{EchoFloor, Family, Transport};

    #[test]
    fn a_kernel_without_modules_has_a_guest() {
        assert!(guest(&[]).contains("to get it: stacklab image build uml-full"));
        assert!(guest(&[System::OwnUml("full".to_owned())]).contains("uml-full, which is here."));
        assert!(guest(&[System::OwnUml("mine".to_owned())]).contains("image build"));
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
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&fitted), words(&text));
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
