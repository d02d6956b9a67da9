//! The daemons' programs.

use crate::services::{dnsmasq, slapd};
use crate::{Ability, Fault, TestbedError, find};
use stacklab_model::{Service, Services};
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Debug)]
pub(crate) struct Program {
    pub name: &'static str,
    pub services: &'static [Service],
    pub what_for: &'static str,
    pub remedy: &'static str,
    /// The option with which it prints its version, and the text before the version.
    pub version: (&'static str, &'static str),
    /// The command that runs this file for services, with its files in a folder.
    pub command: fn(&Path, &Services, &Path) -> Result<Command, Fault>,
}

pub(crate) const PROGRAMS: [&Program; 2] = [&dnsmasq::PROGRAM, &slapd::PROGRAM];

impl Program {
    pub(crate) fn of(services: &Services) -> impl Iterator<Item = &'static Program> {
        let runs = |program: &&Program| services.iter().any(|service| program.services.contains(&service));
        PROGRAMS.into_iter().filter(runs)
    }

    pub(crate) fn find(&self) -> Result<PathBuf, TestbedError> {
        find(self.name, self.remedy)
    }

    pub(crate) fn ability(&self) -> Ability {
        let Program { name, what_for, remedy, .. } = *self;
        let result = self.find().map(drop).map_err(|_| "it is not in PATH".to_owned());
        Ability { name, what_for, result, remedy }
    }

    /// Its name and the version that it reports; the name alone if it reports none.
    pub(crate) fn version(&self, file: &Path) -> String {
        let (option, before) = self.version;
        let mut command = Command::new(file);
        with_own_libraries(&mut command, file);
        let said = command.arg(option).output().map(|output| [output.stdout, output.stderr].concat());
        let said = String::from_utf8_lossy(&said.unwrap_or_default()).into_owned();
        version_in(&said, before)
            .map_or_else(|| self.name.to_owned(), |version| format!("{} {version}", self.name))
    }
}

fn version_in(said: &str, before: &str) -> Option<String> {
    let (_, behind) = said.split_once(before)?;
    Some(behind.split_whitespace().next()?.to_owned())
}

/// The `usr` folder of the program's package: `/usr`, or the folder into which the package was unpacked.
pub(crate) fn prefix(file: &Path) -> Option<PathBuf> {
    Some(file.canonicalize().ok()?.parent()?.parent()?.to_owned())
}

/// Makes an unpacked program use the libraries that were unpacked with it.
pub(crate) fn with_own_libraries(command: &mut Command, file: &Path) {
    let Some(prefix) = prefix(file).filter(|prefix| prefix != Path::new("/usr") && prefix != Path::new("/"))
    else {
        return;
    };
    let folders =
        std::fs::read_dir(prefix.join("lib")).into_iter().flatten().flatten().map(|entry| entry.path());
    let own: Vec<PathBuf> = folders.filter(|path| path.to_string_lossy().ends_with("-linux-gnu")).collect();
    if let Ok(joined) = std::env::join_paths(&own)
        && !own.is_empty()
    {
        command.env("LD_LIBRARY_PATH", joined);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_need_each_program_once() {
        let of =
            |text: &str| Program::of(&text.parse().unwrap()).map(|program| program.name).collect::<Vec<_>>();
        assert!(of("none").is_empty());
        assert_eq!(of("dns+dhcp"), ["dnsmasq"]);
        assert_eq!(of("dhcp+directory"), ["dnsmasq", "slapd"]);
    }

    #[test]
    fn a_version_is_read_from_what_is_said_of_it() {
        let dnsmasq =
            "Dnsmasq version 2.90  Copyright (c) 2000-2024 Simon Kelley\nCompile time options: IPv6";
        assert_eq!(version_in(dnsmasq, "version ").as_deref(), Some("2.90"));
        let slapd = "@(#) $OpenLDAP: slapd 2.5.13+dfsg-5 (Feb  8 2023 01:56:12) $\n\tDebian OpenLDAP";
        assert_eq!(version_in(slapd, "slapd ").as_deref(), Some("2.5.13+dfsg-5"));
        assert_eq!(version_in("no", "slapd "), None);
    }

    #[test]
    fn a_program_that_was_unpacked_has_its_libraries_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        std::fs::create_dir_all(at("usr/sbin")).unwrap();
        std::fs::create_dir_all(at("usr/lib/x86_64-linux-gnu")).unwrap();
        std::fs::write(at("usr/sbin/slapd"), "").unwrap();
        std::os::unix::fs::symlink(at("usr/sbin/slapd"), at("slapd")).unwrap();
        let mut command = Command::new("true");
        with_own_libraries(&mut command, &at("slapd"));
        let library = at("usr/lib/x86_64-linux-gnu").canonicalize().unwrap();
        let set: Vec<_> = command.get_envs().collect();
        assert_eq!(set, [("LD_LIBRARY_PATH".as_ref(), Some(library.as_os_str()))]);
    }
}
