//! Where a study's routed testbeds are built: on this kernel, or in a guest that supports what this kernel does not
//! support.

use crate::hosted::requirements::{JOOL, is_unsupported, router_image};
use crate::image::check_architecture;
use crate::image::installed::built;
use crate::kind::vm::machine::emulator;
use crate::{Requirements, no_image};
use stacklab_model::System;
use stacklab_testbed::mechanism::translate::tayga;
use stacklab_testbed::{RoutedSpec, TestbedError};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// Guests that can host testbeds, fastest first.
fn candidates() -> Vec<System> {
    let series = ["6.1", "6.12", "7.2", "5.10"].map(|series| System::Linux(series.to_owned()));
    [System::Uml].into_iter().chain(built()).chain(series).collect()
}

/// Where to build the testbeds of a study with routers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placement {
    /// `where-needed`: in a guest only if this kernel does not support what a mechanism needs.
    WhereNeeded,
    /// `any`: in the fastest guest that is installed here and supports what they need.
    Any,
    /// In this guest.
    Guest(System),
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Placement::WhereNeeded => f.write_str("where-needed"),
            Placement::Any => f.write_str("any"),
            Placement::Guest(system) => write!(f, "{system}"),
        }
    }
}

impl FromStr for Placement {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "where-needed" => Ok(Placement::WhereNeeded),
            "any" => Ok(Placement::Any),
            system => match system.parse()? {
                holds @ (System::Uml | System::OwnUml(_) | System::Linux(_)) => Ok(Placement::Guest(holds)),
                other => {
                    Err(format!("{other} cannot host a testbed: expected uml, uml-NAME or linux-SERIES"))
                }
            },
        }
    }
}

/// Finds where the testbeds of a study can be built: on this kernel (`None`), or in a guest. If some hosts are
/// guests, only this kernel is possible, because a guest hosts whole testbeds.
///
/// # Errors
/// What is missing here, which mechanism needs it, and how to get it. Nothing is started before this is known.
pub fn find_placement(needs: &Requirements, placement: &Placement) -> Result<Option<System>, TestbedError> {
    let place = place(needs, placement)?;
    if needs.specs(place.as_ref()).iter().any(RoutedSpec::runs_tayga) {
        tayga::program()?;
    }
    Ok(place)
}

fn place(needs: &Requirements, placement: &Placement) -> Result<Option<System>, TestbedError> {
    let missing = needs.missing_here();
    if !needs.guests().is_empty() {
        return needs.check_guests(&missing).map(|()| None);
    }
    let candidates = match placement {
        Placement::WhereNeeded if missing.is_empty() => return Ok(None),
        Placement::WhereNeeded | Placement::Any => candidates(),
        Placement::Guest(system) => vec![system.clone()],
    };
    let wanted = needs.of_kernel();
    let lacks = |system: &System| {
        wanted.iter().copied().filter(|need| is_unsupported(system, need)).collect::<BTreeSet<&str>>()
    };
    let fits = |system: &System| lacks(system).is_empty();
    if let Placement::Guest(guest) = placement
        && !fits(guest)
    {
        let unsupported = Vec::from_iter(lacks(guest)).join(", ");
        return Err(TestbedError(format!(
            "{guest} lacks features for the study ({unsupported}): build a guest that has them (stacklab image \
             build uml-full, then --in-vm=uml-full), or name --in-vm=linux-6.1, which has all but jool"
        )));
    }
    let runs = |system: &System| router_image(system).is_ok();
    if let Some(system) = candidates.iter().find(|system| fits(system) && runs(system)).cloned() {
        return Ok(Some(system));
    }
    let system = candidates.into_iter().find(fits).unwrap_or_else(|| {
        if wanted.contains(&JOOL) {
            System::OwnUml("full".to_owned())
        } else {
            System::Linux("6.1".to_owned())
        }
    });
    let why: Vec<String> = missing.iter().map(|ability| needs.describe_missing(ability)).collect();
    let why = if why.is_empty() { "--in-vm asks for a guest".to_owned() } else { why.join("; ") };
    check_architecture().map_err(|error| TestbedError(format!("{why}; {error}")))?;
    let qemu = !system.is_uml() && emulator().is_err();
    let also = if qemu { ", and qemu-system-x86 is not installed" } else { "" };
    Err(no_image(&system, format!("{why}; no installed guest supports it{also}")))
}
