//! The language of study files: one table of keys, the check of a file against it, its JSON Schema and its reference.

pub(crate) mod check;
pub(crate) mod leaf;
pub(crate) mod reference;
pub(crate) mod schema;
pub(crate) mod table;
mod wifi;

use stacklab_model::{Family, Generator, Mechanism, PROGRAM_PLACEHOLDERS, Probe};

#[derive(Clone, Copy)]
pub(crate) struct KeyDef {
    pub name: &'static str,
    pub kind: Kind,
    pub presence: Presence,
    /// The meaning of the key, in one sentence; included in the JSON Schema.
    pub doc: &'static str,
}

#[derive(Clone, Copy)]
pub(crate) enum Presence {
    Required,
    Optional,
    /// Absent means this value, written in TOML.
    Default(&'static str),
}

#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Text,
    Boolean,
    /// A whole number, bounds included.
    Integer {
        least: i64,
        most: i64,
    },
    OneOfNumbers(&'static [i64]),
    Number {
        least: f64,
        most: f64,
    },
    /// A whole number from 0, or this name.
    CountOr {
        most: i64,
        name: &'static str,
    },
    /// A number of messages per second, or `"link"`.
    MessageRate,
    /// As [`Kind::MessageRate`], or a share of the flood rate, or `"search"`.
    PacedRate,
    Rate,
    /// A duration such as `"200ms"`, bounds included and written alike.
    Duration {
        least: &'static str,
        most: &'static str,
    },
    /// A share such as `"2 %"` or 0.02.
    Share,
    /// One of a closed set of names, called `set`.
    Name {
        set: &'static str,
        names: &'static [&'static str],
    },
    /// A metric; of one probe, if one is given.
    Metric(Option<Probe>),
    /// The system of a host, or of two hosts: `gvisor`, `namespace -> linux-6.1`.
    System,
    /// Services that run on the receiver: `none`, `dns+dhcp`.
    Services,
    Address(Family),
    /// A level of a factor: text, a whole number or a boolean, as in the factor's own list.
    Level,
    /// A list, not empty, nothing twice.
    List(&'static Kind),
    Table(&'static [KeyDef]),
    SomeOf(&'static [KeyDef]),
    OneOf(&'static [KeyDef]),
    Tables(&'static [KeyDef]),
    /// Part of a study, merged over it.
    Part,
    /// Known, but out of place here, for this reason.
    Refused(&'static str),
}

impl KeyDef {
    /// The description, with a sentence for each mechanism and generator from its definition.
    pub(crate) fn description(&self) -> String {
        let levels: Vec<String> = match self.name {
            "mechanism" => {
                Mechanism::ALL.iter().map(|one| format!("{one}: {}.", one.definition().doc)).collect()
            }
            "generator" => {
                Generator::ALL.iter().map(|one| format!("{one}: {}.", one.definition().doc)).collect()
            }
            "server" => {
                let placeholders =
                    PROGRAM_PLACEHOLDERS.iter().map(|(name, is)| format!("`{{{name}}}` is {is}"));
                let said = placeholders.collect::<Vec<_>>().join("; ");
                return self.doc.replace("PLACEHOLDERS", &format!("In both commands {said}."));
            }
            _ => return self.doc.to_owned(),
        };
        self.doc.replace("LEVELS", &levels.join(" "))
    }

    /// Whether the key is known and out of place.
    pub(crate) fn is_out_of_place(&self) -> bool {
        matches!(self.kind, Kind::Refused(_))
    }
}

impl Kind {
    /// The keys of a table, or of each table of a list.
    pub(crate) fn keys(&self) -> Option<&'static [KeyDef]> {
        match self {
            Kind::Table(keys) | Kind::SomeOf(keys) | Kind::OneOf(keys) | Kind::Tables(keys) => Some(keys),
            _ => None,
        }
    }

    /// The keys of a table that is merged key by key; the choices of `OneOf` exclude each other, so it is replaced.
    pub(crate) fn merged_keys(&self) -> Option<&'static [KeyDef]> {
        match self {
            Kind::Table(keys) | Kind::SomeOf(keys) => Some(keys),
            _ => None,
        }
    }
}

pub(crate) const fn required(name: &'static str, kind: Kind, doc: &'static str) -> KeyDef {
    KeyDef { name, kind, presence: Presence::Required, doc }
}

pub(crate) const fn optional(name: &'static str, kind: Kind, doc: &'static str) -> KeyDef {
    KeyDef { name, kind, presence: Presence::Optional, doc }
}

pub(crate) const fn default(
    name: &'static str,
    kind: Kind,
    value: &'static str,
    doc: &'static str,
) -> KeyDef {
    KeyDef { name, kind, presence: Presence::Default(value), doc }
}
