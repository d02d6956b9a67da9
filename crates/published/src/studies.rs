//! The published studies by name.

use stacklab_model::nearest;

/// A study with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StudyName {
    /// Its name: first author, year, subject.
    pub name: &'static str,
    /// The subject of its comparison, in a few words.
    pub subject: &'static str,
    /// The number of runs of each of its cells.
    pub runs: Option<u32>,
}

/// The studies, in the order of their names; the order is the same everywhere.
pub const STUDIES: [StudyName; 5] = [
    StudyName {
        name: "soorty2013linux",
        subject: "Red Hat Enterprise Server 5.5 and Ubuntu Server 10.04, TCP over Gigabit Ethernet",
        runs: Some(10),
    },
    StudyName {
        name: "sarkar2013winlin",
        subject: "Windows and Linux, client and server, TCP over Gigabit Ethernet",
        runs: Some(10),
    },
    StudyName {
        name: "ogunleye2016",
        subject: "IPv6 over IPv4 by configured tunnel and 6to4, Windows and Ubuntu",
        runs: None,
    },
    StudyName {
        name: "kolahi2011wlan",
        subject: "Windows XP, Windows 7 and Fedora 12 over 802.11n with WPA2",
        runs: Some(40),
    },
    StudyName {
        name: "kolahi2009lan",
        subject: "Windows Vista pairs and Vista with Windows Server 2008 over Fast Ethernet",
        runs: Some(40),
    },
];

/// The study with a name, or an error with the names that exist.
pub fn study(name: &str) -> Result<&'static StudyName, String> {
    STUDIES.iter().find(|study| study.name == name).ok_or_else(|| {
        let names = STUDIES.each_ref().map(|study| study.name);
        let meant = nearest(name, names).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        format!("there is no published study `{name}`: expected one of {}{meant}", names.join(", "))
    })
}
