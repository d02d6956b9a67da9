//! `stacklab image`.

use crate::failure::{Failure, INTERRUPTED, interrupt_flag};
use crate::output::print_lines;
use clap::Subcommand;
use stacklab_guests::image::{self, Image};
use stacklab_model::{System, say, say_part};
use stacklab_testbed::TestbedError;
use std::fmt::Write;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

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
            let interrupted = interrupt_flag()?;
            for system in systems {
                let got = show_steps(system, |step| image::get(system, step));
                let image = got.map_err(|error| end(system, error, interrupted))?;
                print_lines(&format!("{system}: {} is here ({})\n", image.version, image.source))?;
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
    let interrupted = interrupt_flag()?;
    let built = show_steps(system, |step| image::build(name, tree, step));
    let image = built.map_err(|error| end(system, error, interrupted))?;
    print_lines(&format!("{system}: {} is here ({})\n", image.version, image.source))
}

/// Makes an image, and prints each step. On a terminal, what says only that a step still runs is replaced by the next.
fn show_steps<T>(system: &System, make: impl FnOnce(&mut image::Step<'_>) -> T) -> T {
    let is_terminal = std::io::stderr().is_terminal();
    let mut is_open = false;
    let made = make(&mut |what: &str| {
        let clear = if is_open { "\r\x1b[K" } else { "" };
        is_open = is_terminal && what.ends_with(image::STILL_RUNS);
        say_part!("{clear}{system}: {what}{}", if is_open { "" } else { "\n" });
    });
    if is_open {
        say!("");
    }
    made
}

/// An interruption has its own exit code. The part of the image is removed then.
fn end(system: &System, error: TestbedError, interrupted: &AtomicBool) -> Failure {
    if interrupted.load(Ordering::Relaxed) {
        let what = "nothing of it is left but the downloads, which the next time uses";
        return Failure::new(INTERRUPTED, format!("interrupted: there is no new image of {system}; {what}"));
    }
    error.into()
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
                let way = image::how_to_get(&system);
                let time = image::how_long_to_get(&system);
                writeln!(text, "  {:<12} not here: {way} ({time})", system.to_string())
            }
        };
    }
    if !every().iter().any(|system| system.to_string() == "uml-full") {
        let full = System::OwnUml("full".to_owned());
        let time = image::how_long_to_get(&full);
        let _ = writeln!(text, "  {full}     not here: {} ({time})", image::how_to_get(&full));
    }
    text += "  uml-NAME     of a kernel tree: stacklab image build uml-NAME --tree DIR\n";
    print_lines(&text)
}

fn check() -> Result<(), Failure> {
    let here: Vec<Image> = every().iter().filter_map(|system| Image::find(system).ok()).collect();
    if here.is_empty() {
        return print_lines(&format!("No image is in {}\n", image::cache().display()));
    }
    for image in here {
        image.check()?;
        print_lines(&format!("{}: {} is unchanged\n", image.system, image.version))?;
    }
    Ok(())
}
