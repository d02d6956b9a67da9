//! The daemons' programs, and their configuration in files of a temporary folder. They use no settings of this machine.
//! dnsmasq serves DNS for one name, and DHCP for addresses of the link, over both families; slapd a small directory
//! that anybody may read.

use crate::addressing::address;
use crate::services::ask::{ENTRIES, NAME, SUFFIX, entry};
use crate::services::{prepare, write};
use crate::{Ability, Attempt, Fault, TestbedError, addresses, find};
use stacklab_model::{Family, Role, Service, Services};
use std::fmt::Write;
use std::fs;
use std::net::{IpAddr, SocketAddr};
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

pub(crate) const PROGRAMS: [&Program; 2] = [&DNSMASQ, &SLAPD];

impl Program {
    pub(crate) fn of(services: &Services) -> impl Iterator<Item = &'static Program> {
        PROGRAMS
            .into_iter()
            .filter(|program| services.iter().any(|service| program.services.contains(&service)))
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

pub(crate) const DNSMASQ: Program = Program {
    name: "dnsmasq",
    services: &[Service::Dns, Service::Dhcp],
    what_for: "services dns and dhcp",
    remedy: "sudo apt-get install dnsmasq-base",
    version: ("--version", "version "),
    command: dnsmasq_command,
};

fn dnsmasq_command(file: &Path, services: &Services, own: &Path) -> Result<Command, Fault> {
    let path = own.join("dnsmasq.conf");
    write(&path, &dnsmasq_config(services, own))?;
    let mut command = Command::new(file);
    // Run in the foreground as the starting user: a user namespace may have no other user.
    command.arg("--no-daemon").arg(format!("--conf-file={}", path.display()));
    Ok(command)
}

/// The range of addresses that it may lease, as the last part of the address. No client here leases one.
const RANGE: [u8; 2] = [100, 199];

fn dnsmasq_config(services: &Services, folder: &Path) -> String {
    let mut text = "no-resolv\nno-poll\nno-hosts\nlog-facility=-\n".to_owned();
    if services.contains(Service::Dns) {
        let [v4, v6] = [Family::Ipv4, Family::Ipv6].map(|family| address(family, Role::Receiver).0);
        let _ = writeln!(text, "host-record={NAME},{v4},{v6}");
    } else {
        text += "port=0\n";
    }
    if services.contains(Service::Dhcp) {
        for family in Family::ALL {
            let (own, prefix) = address(*family, Role::Receiver);
            let [low, high] = RANGE.map(|last| with_last(own, last));
            let _ = match own {
                IpAddr::V4(_) => writeln!(text, "dhcp-range={low},{high},1h"),
                IpAddr::V6(_) => writeln!(text, "dhcp-range={low},{high},{prefix},1h"),
            };
        }
        let _ = writeln!(text, "no-ping\ndhcp-leasefile={}", folder.join("leases").display());
    }
    text
}

fn with_last(address: IpAddr, last: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            [a, b, c, last].into()
        }
        IpAddr::V6(address) => {
            let mut octets = address.octets();
            octets[15] = last;
            octets.into()
        }
    }
}

pub(crate) const SLAPD: Program = Program {
    name: "slapd",
    services: &[Service::Directory],
    what_for: "service directory",
    remedy: "sudo apt-get install slapd (which also starts one for this machine), or unpack that package and put its \
             usr/sbin into PATH, as scripts/setup test-all does",
    version: ("-VV", "slapd "),
    command: slapd_command,
};

/// The folders that may hold slapd's modules, relative to the parent of `sbin`.
const MODULES: [&str; 4] = ["lib/ldap", "lib/openldap", "lib64/openldap", "libexec/openldap"];
const PORT: u16 = 389;

fn slapd_command(file: &Path, _: &Services, own: &Path) -> Result<Command, Fault> {
    let [path, ldif, database] = ["slapd.conf", "entries.ldif", "database"].map(|name| own.join(name));
    fs::create_dir(&database).attempt(format!("create {}", database.display()))?;
    let modules = prefix(file).and_then(|prefix| {
        let mut folders = MODULES.iter().map(|folder| prefix.join(folder));
        folders.find(|folder| folder.join("back_mdb.so").exists() || folder.join("back_mdb.la").exists())
    });
    write(&path, &slapd_config(&database, modules.as_deref()))?;
    write(&ldif, &entries())?;
    let mut add = Command::new(file);
    add.args(["-T", "add", "-f"]).arg(&path).arg("-l").arg(&ldif);
    prepare(&mut add, file, own);
    let filled = add.output().attempt(format!("start {}", file.display()))?;
    if !filled.status.success() {
        let said = String::from_utf8_lossy(&filled.stderr).trim().replace('\n', "\n    ");
        return Err(format!("{}:\n    {said}", filled.status)).attempt("fill the directory of slapd");
    }
    let listen =
        addresses(Role::Receiver).map(|address| format!("ldap://{}/", SocketAddr::new(address, PORT)));
    let mut command = Command::new(file);
    // Run in the foreground with all log levels (-d), and do not log to syslog (-s).
    command.args(["-d", "none", "-s", "0", "-h", &listen.join(" "), "-f"]).arg(path);
    Ok(command)
}

/// Its configuration file. Its database is kept in a folder. It includes no file of this machine: the only object
/// class of its entries is defined here. `modules` is the folder of slapd's modules, if the database backend is a
/// module.
fn slapd_config(database: &Path, modules: Option<&Path>) -> String {
    let mut text = String::new();
    if let Some(modules) = modules {
        let _ = writeln!(text, "modulepath \"{}\"\nmoduleload back_mdb", modules.display());
    }
    // 1.1 is the OID arc that OpenLDAP's guide reserves for experiments.
    text += "objectclass ( 1.1.2.1 NAME 'stacklabEntry' SUP top STRUCTURAL MUST cn MAY description )\n";
    text += "loglevel 0\nthreads 2\n";
    let _ = write!(
        text,
        "database mdb\nsuffix \"{SUFFIX}\"\ndirectory \"{}\"\nmaxsize 16777216\nindex cn eq\n",
        database.display()
    );
    text
}

fn entries() -> String {
    let mut text = "dn: cn=stacklab\nobjectClass: stacklabEntry\ncn: stacklab\n".to_owned();
    for number in 0..ENTRIES {
        let name = entry(number);
        let of = SUFFIX;
        let _ = write!(
            text,
            "\ndn: cn={name},{of}\nobjectClass: stacklabEntry\ncn: {name}\ndescription: entry {number} of {ENTRIES}\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list_programs(services: &str) -> Vec<&'static str> {
        Program::of(&services.parse().unwrap()).map(|program| program.name).collect()
    }

    #[test]
    fn services_need_each_program_once() {
        assert!(list_programs("none").is_empty());
        assert_eq!(list_programs("dns+dhcp"), ["dnsmasq"]);
        assert_eq!(list_programs("dhcp+directory"), ["dnsmasq", "slapd"]);
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
    fn unpacked_program_has_its_libraries_beside_it() {
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

    fn of(services: &str) -> String {
        dnsmasq_config(&services.parse().unwrap(), Path::new("/tmp/x"))
    }

    #[test]
    fn serves_both_families_with_nothing_of_the_machine() {
        assert_eq!(
            of("dns+dhcp"),
            "no-resolv\nno-poll\nno-hosts\nlog-facility=-\n\
             host-record=server.test,198.18.0.2,2001:2:0:1::2\n\
             dhcp-range=198.18.0.100,198.18.0.199,1h\n\
             dhcp-range=2001:2:0:1::64,2001:2:0:1::c7,64,1h\n\
             no-ping\ndhcp-leasefile=/tmp/x/leases\n"
        );
    }

    #[test]
    fn it_does_only_what_it_is_there_for() {
        assert!(!of("dns").contains("dhcp"));
        assert!(of("dhcp").contains("port=0") && !of("dhcp").contains("host-record"));
    }

    #[test]
    fn its_directory_is_in_its_own_folder() {
        let text = slapd_config(Path::new("/tmp/a b"), Some(Path::new("/usr/lib/ldap")));
        assert!(text.contains("directory \"/tmp/a b\"\n") && text.contains("suffix \"cn=stacklab\"\n"));
        assert!(text.starts_with("modulepath \"/usr/lib/ldap\"\nmoduleload back_mdb\n"), "{text}");
        assert!(!text.contains("include"), "{text}");
        assert!(!slapd_config(Path::new("/x"), None).contains("module"));
    }

    #[test]
    fn every_entry_that_is_asked_for_is_there() {
        let text = entries();
        assert_eq!(text.matches("dn: ").count(), ENTRIES as usize + 1);
        assert!(
            text.contains("\ndn: cn=user99,cn=stacklab\nobjectClass: stacklabEntry\ncn: user99\n"),
            "{text}"
        );
    }
}
