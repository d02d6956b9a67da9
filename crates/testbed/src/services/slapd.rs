//! The configuration of slapd: a small directory that anybody may read.

use crate::services::ask::{ENTRIES, SUFFIX, entry};
use crate::services::daemon::{prepare, write};
use crate::services::program::{Program, prefix};
use crate::{Attempt, Fault, addresses};
use stacklab_model::{Role, Service, Services};
use std::fmt::Write;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

pub(super) const PROGRAM: Program = Program {
    name: "slapd",
    services: &[Service::Directory],
    what_for: "service directory",
    remedy: "sudo apt-get install slapd (which also starts one for this machine), or unpack that package and put its \
             usr/sbin into PATH, as scripts/setup test-all does",
    version: ("-VV", "slapd "),
    command,
};

/// The folders that may hold slapd's modules, relative to the parent of `sbin`.
const MODULES: [&str; 4] = ["lib/ldap", "lib/openldap", "lib64/openldap", "libexec/openldap"];
const PORT: u16 = 389;

fn command(file: &Path, _: &Services, own: &Path) -> Result<Command, Fault> {
    let [path, ldif, database] = ["slapd.conf", "entries.ldif", "database"].map(|name| own.join(name));
    fs::create_dir(&database).attempt(format!("create {}", database.display()))?;
    let modules = prefix(file).and_then(|prefix| {
        let mut folders = MODULES.iter().map(|folder| prefix.join(folder));
        folders.find(|folder| folder.join("back_mdb.so").exists() || folder.join("back_mdb.la").exists())
    });
    write(&path, &config(&database, modules.as_deref()))?;
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
fn config(database: &Path, modules: Option<&Path>) -> String {
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
        let (name, of) = (entry(number), SUFFIX);
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

    #[test]
    fn its_directory_is_in_its_own_folder() {
        let text = config(Path::new("/tmp/a b"), Some(Path::new("/usr/lib/ldap")));
        assert!(text.contains("directory \"/tmp/a b\"\n") && text.contains("suffix \"cn=stacklab\"\n"));
        assert!(text.starts_with("modulepath \"/usr/lib/ldap\"\nmoduleload back_mdb\n"), "{text}");
        assert!(!text.contains("include"), "{text}");
        assert!(!config(Path::new("/x"), None).contains("module"));
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
