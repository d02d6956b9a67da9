//! The configuration of slapd: a small directory that anybody may read.

use crate::services::ask::answer::{ENTRIES, SUFFIX, entry};
use std::fmt::Write;
use std::path::Path;

/// Its configuration file. Its database is kept in a folder. It includes no file of this machine: the only object
/// class of its entries is defined here. `modules` is the folder of slapd's modules, if the database backend is a
/// module.
pub(crate) fn config(database: &Path, modules: Option<&Path>) -> String {
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

/// The directory's entries, in LDIF.
pub(crate) fn entries() -> String {
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
