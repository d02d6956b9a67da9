//! This program on other machines: found, copied there, and removed again.

use crate::CampaignError;
use crate::rig::ssh::{ask, ask_with, shown};
use stacklab_guests::image::sha256;
use stacklab_model::System;
use std::fs::File;
use std::io::{self, BufRead, IsTerminal, Write};

/// Where this program installs itself on another machine, below the user's home.
const FOLDER: &str = ".cache/stacklab/bin";
/// The output of `stacklab --version`.
const OWN_VERSION: &str = concat!("stacklab ", env!("CARGO_PKG_VERSION"));
/// The copy, for a shell on the other machine.
const COPY: &str = concat!("\"$HOME/.cache/stacklab/bin/stacklab-", env!("CARGO_PKG_VERSION"), "\"");

/// Whether this program may copy itself to other machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copying {
    /// The user has permitted it.
    Allowed,
    /// The user is asked.
    Asked,
}

#[derive(Debug, PartialEq, Eq)]
enum Found {
    /// The program that the shell finds is of this version.
    Installed,
    /// A copy, the same to the byte.
    Copied,
    /// Nothing that can be used, for this reason.
    Nothing(String),
}

/// The command of this version of the program on another machine, for a shell there; copies it there if it is missing.
pub(crate) fn agent_on(host: &str, copying: Copying) -> Result<String, CampaignError> {
    let system = System::Ssh(host.to_owned());
    let own = own_digest()?;
    let look = format!(
        "stacklab --version 2>/dev/null; if [ -e {COPY} ]; then echo \"copy $(sha256sum < {COPY} 2>/dev/null)\"; fi; true"
    );
    let missing = match found(&ask(&system, &[&look], "look for stacklab")?, &own) {
        Found::Installed => return Ok("stacklab".to_owned()),
        Found::Copied => return Ok(COPY.to_owned()),
        Found::Nothing(missing) => missing,
    };
    let question = format!("{host}: {missing}. Copy this version to ~/{FOLDER}?");
    if copying == Copying::Asked && !agreed(&question) {
        return Err(CampaignError::Unreachable(format!(
            "no agent of this version ({OWN_VERSION}) is on {system}: {missing}; copy it with --copy-agent, or install it"
        )));
    }
    copy(&system)?;
    let runs = ask(&system, &[&format!("{COPY} --version 2>&1; true")], "try stacklab")?;
    if runs.trim() == OWN_VERSION {
        return Ok(COPY.to_owned());
    }
    Err(CampaignError::Unreachable(format!(
        "the program copied to {system} does not run there: check its architecture and C library"
    )))
}

/// Reads what the machine found: the version of a program, and `copy` with its digest.
fn found(output: &str, own: &str) -> Found {
    if output.lines().any(|line| line.trim() == OWN_VERSION) {
        return Found::Installed;
    }
    let digest = output.lines().find_map(|line| line.strip_prefix("copy "));
    let other = output.lines().find(|line| !line.starts_with("copy "));
    match (other, digest) {
        (_, Some(digest)) if digest.split_whitespace().next() == Some(own) => Found::Copied,
        (_, Some(_)) => Found::Nothing("the copy of stacklab there is not this program".to_owned()),
        (Some(other), _) => {
            Found::Nothing(format!("another version of stacklab is there ({})", shown(other)))
        }
        (None, None) => Found::Nothing("stacklab is not there".to_owned()),
    }
}

/// SHA-256 of this program.
fn own_digest() -> Result<String, CampaignError> {
    let digest = std::env::current_exe().and_then(|program| sha256(&program));
    digest.map_err(|reason| CampaignError::System { attempted: "read this program", reason })
}

fn agreed(question: &str) -> bool {
    if !io::stdin().is_terminal() {
        return false;
    }
    eprint!("{question} [y/N] ");
    let _ = io::stderr().flush();
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}

/// Copies this program to another machine, under a temporary name until it is complete.
fn copy(system: &System) -> Result<(), CampaignError> {
    let program = std::env::current_exe()
        .and_then(File::open)
        .map_err(|reason| CampaignError::System { attempted: "read this program", reason })?;
    let take = format!(
        "umask 077 && mkdir -p \"$HOME/{FOLDER}\" && cat > {COPY}.part && chmod 700 {COPY}.part && mv {COPY}.part {COPY}"
    );
    ask_with(system, &[&take], program, "put stacklab").map(drop)
}

/// Removes every copy of this program that was put on a machine, of any version. Returns their names.
pub fn remove(system: &System) -> Result<Vec<String>, CampaignError> {
    let remove = format!(
        "cd \"$HOME/{FOLDER}\" 2>/dev/null || exit 0; for copy in stacklab-*; do if [ -f \"$copy\" ]; then rm -f -- \"$copy\" && echo \"$copy\" || exit 1; fi; done; \
         cd ..; rmdir bin 2>/dev/null && cd .. && rmdir stacklab 2>/dev/null; true"
    );
    let removed = ask(system, &[&remove], "remove stacklab")?;
    Ok(removed.lines().map(|name| format!("~/{FOLDER}/{}", shown(name))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_used_again_if_it_is_this_program_and_an_installed_one_by_its_version() {
        assert_eq!(found(&format!("{OWN_VERSION}\ncopy ffff  -\n"), "abcd"), Found::Installed);
        assert_eq!(found("copy abcd  -\n", "abcd"), Found::Copied);
        assert_eq!(found("stacklab 0.0.1\ncopy abcd  -\n", "abcd"), Found::Copied);
        for (output, reason) in [
            ("", "stacklab is not there"),
            ("stacklab 0.0.1\n", "another version of stacklab is there (stacklab 0.0.1)"),
            ("copy ffff  -\n", "not this program"),
            ("copy \n", "not this program"),
            ("copy abcdef\n", "not this program"),
            ("\u{1b}]0;x\u{7}\n", "(\u{fffd}]0;x\u{fffd})"),
        ] {
            let Found::Nothing(missing) = found(output, "abcd") else { panic!("{output}") };
            assert!(missing.contains(reason), "{missing}");
        }
    }
}
