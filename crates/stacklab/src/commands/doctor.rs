//! `stacklab doctor`.

use crate::failure::Failure;
use stacklab_testbed::{Privilege, abilities, enter};
use std::fmt::Write;

/// What a study cannot do without.
const NEEDED: [&str; 4] = ["network namespace", "ipv6", "veth", "offload control"];

/// Says what this machine can do, found by doing it, and how to get what is missing.
pub fn doctor() -> Result<(), Failure> {
    let privilege = enter()?;
    let mut text = match privilege {
        Privilege::Root => "Root: testbeds are made directly.\n".to_owned(),
        Privilege::UserNamespace => {
            "Not root: testbeds are made in a user namespace of their own.\n".to_owned()
        }
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
    let found = abilities();
    for ability in &found {
        let _ = match &ability.result {
            Ok(()) => writeln!(text, "  yes  {:<18} {}", ability.name, ability.what_for),
            Err(reason) => writeln!(
                text,
                "  no   {:<18} {}\n       {:<18} {reason}\n       {:<18} to get it: {}",
                ability.name, ability.what_for, "", "", ability.remedy
            ),
        };
    }
    text.push('\n');
    for (name, result) in &facts.abilities {
        let _ = match result.as_str() {
            "yes" => writeln!(text, "  yes  {name}"),
            reason => writeln!(text, "  no   {name}: {reason}"),
        };
    }
    let unable = found.iter().any(|ability| NEEDED.contains(&ability.name) && ability.result.is_err());
    if !unable {
        text += "\nThis machine can run studies: stacklab run\n";
    }
    super::report::print_text(&text)?;
    if unable { Err(Failure::Unable) } else { Ok(()) }
}
