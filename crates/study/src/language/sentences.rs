//! Descriptions of keys, with a sentence for each mechanism and generator from its definition.

use crate::language::key::KeyDef;
use stacklab_model::{Generator, Mechanism};

/// The description of a key.
pub(crate) fn doc(key: &KeyDef) -> String {
    let levels: Vec<String> = match key.name {
        "mechanism" => {
            Mechanism::ALL.iter().map(|level| format!("{level}: {}.", level.definition().doc)).collect()
        }
        "generator" => {
            Generator::ALL.iter().map(|level| format!("{level}: {}.", level.definition().doc)).collect()
        }
        _ => return key.doc.to_owned(),
    };
    key.doc.replace("LEVELS", &levels.join(" "))
}
