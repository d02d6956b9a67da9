//! `stacklab image`.

use crate::failure::Failure;
use crate::output::print_text;
use clap::Subcommand;
use stacklab_guests::image::{self, Image};
use stacklab_model::System;
use std::fmt::Write;
use std::path::{Path, PathBuf};

#[derive(Debug, Subcommand)]
pub(crate) enum ImageCommand {
    /// List the systems, and the versions that are installed
    List,
    /// Fetch the newest image of a system
    Get {
        /// gvisor, uml, or a kernel series: linux-5.10, linux-6.1, linux-6.12, linux-7.2; may be repeated
        #[arg(value_name = "SYSTEM", required = true)]
        systems: Vec<System>,
    },
    /// Build user-mode Linux: from Debian's stable source, with all transition mechanisms and Jool, or from your kernel
    /// tree
    Build {
        /// uml-NAME: its name in studies and for --in-vm
        #[arg(value_name = "uml-NAME")]
        system: System,
        /// A folder with Linux source, which is not modified; default: Debian's stable source, fetched
        #[arg(long, value_name = "DIR")]
        tree: Option<PathBuf>,
    },
    /// Compare all files of the installed images with the sums taken when they were fetched
    Check,
}

pub(crate) fn image(command: &ImageCommand) -> Result<(), Failure> {
    match command {
        ImageCommand::List => list(),
        ImageCommand::Get { systems } => {
            for system in systems {
                let image = image::get(system, &mut |what: &str| eprintln!("{system}: {what}"))?;
                print_text(&format!("{system}: {} is here ({})\n", image.version, image.source))?;
            }
            Ok(())
        }
        ImageCommand::Build { system, tree } => build(system, tree.as_deref()),
        ImageCommand::Check => check(),
    }
}

fn build(system: &System, tree: Option<&Path>) -> Result<(), Failure> {
    let System::OwnUml(name) = system else {
        let what = "only user-mode Linux can be built: use a name uml-NAME, such as uml-full";
        return Err(Failure::usage(format!("{system} is not built here; {what}")));
    };
    let image = image::build(name, tree, &mut |what: &str| eprintln!("{system}: {what}"))?;
    print_text(&format!("{system}: {} is here ({})\n", image.version, image.source))
}

/// Images that can be fetched, and images that were built here.
fn every() -> Vec<System> {
    image::known().into_iter().chain(image::built()).collect()
}

fn list() -> Result<(), Failure> {
    let mut text = format!("Images in {}\n\n", image::cache().display());
    for system in every() {
        let _ = match Image::find(&system) {
            Ok(image) => writeln!(text, "  {:<12} {} ({})", system.to_string(), image.version, image.source),
            Err(_) => {
                writeln!(text, "  {:<12} not here: {}", system.to_string(), image::how_to_get(&system))
            }
        };
    }
    if !every().iter().any(|system| system.to_string() == "uml-full") {
        text += "  uml-full     not here: stacklab image build uml-full\n";
    }
    text += "  uml-NAME     of a kernel tree: stacklab image build uml-NAME --tree DIR\n";
    print_text(&text)
}

fn check() -> Result<(), Failure> {
    let here: Vec<Image> = every().iter().filter_map(|system| Image::find(system).ok()).collect();
    if here.is_empty() {
        return print_text(&format!("No image is in {}\n", image::cache().display()));
    }
    for image in here {
        image.check()?;
        print_text(&format!("{}: {} is unchanged\n", image.system, image.version))?;
    }
    Ok(())
}
