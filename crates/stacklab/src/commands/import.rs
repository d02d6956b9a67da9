//! `stacklab import`: result files of other tools as a record.

use crate::cli::import::ImportOptions;
use crate::commands::output::print_text;
use crate::failure::Failure;
use sha2::{Digest, Sha256};
use stacklab_campaign::imported::{ImportedStudy, NAME};
use stacklab_import::{Content, ImportedRun, MOST_BYTES, ToolFile, ToolTest, Untold, read, runs};
use stacklab_model::{CpuScope, Transport, printable_text};
use stacklab_store::{Campaign, Imported, Origin, Record, StoreError};
use stacklab_traffic::host::unix_time::now_unix_ns;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Makes a record of all files, or none.
pub(crate) fn import(options: &ImportOptions) -> Result<(), Failure> {
    if options.out.exists() {
        return Err(StoreError::Exists { path: options.out.clone() }.into());
    }
    let (mut files, mut origins) = (Vec::new(), Vec::new());
    let mut bad: Vec<(String, String)> = Vec::new();
    for path in &options.files {
        match one(path, options) {
            Ok((file, origin)) => {
                files.push(file);
                origins.push(origin);
            }
            Err(Failure::Import { file, reason }) => bad.push((file, reason)),
            Err(failure) => return Err(failure),
        }
    }
    if let [(file, reason), more @ ..] = &bad[..] {
        // All of them, so that one more run is enough.
        let more = more.iter().map(|(file, reason)| format!("\n{}: {reason}", printable_text(file)));
        return Err(Failure::Import {
            file: file.clone(),
            reason: reason.clone() + &more.collect::<String>(),
        });
    }
    let runs = runs(&files).map_err(|(file, test)| untold(&options.files[file], &files[file], test))?;
    let left_out = files.iter().zip(&origins).flat_map(|(file, origin)| {
        file.left_out.iter().map(|what| format!("left out of {}: {what}\n", printable_text(&origin.file)))
    });
    let left_out: String = left_out.collect();
    if runs.is_empty() {
        return Err(Failure::NothingToImport(left_out));
    }
    let text = said(&origins);
    let title = options.title.clone().unwrap_or_else(|| format!("Imported: {text}"));
    let campaign = Campaign {
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
        created_unix_ns: now_unix_ns(),
        study_name: NAME.to_owned(),
        study_text: ImportedStudy::new(title, f64::from(options.margin) / 100.0, options.metrics.clone())
            .to_text(),
        scale: None,
        settings: Vec::new(),
        seed: 0,
        testbed_description: format!("imported, not measured by this program: {text}"),
        cpu_scope: CpuScope::Various,
        sample_period_ns: None,
    };
    let imported = |(file, run, series): ImportedRun| Imported { origin: origins[file].clone(), run, series };
    let runs: Vec<Imported> = runs.into_iter().map(imported).collect();
    Record::import(&options.out, &campaign, &runs)?;
    let [count, files] = [(runs.len(), "run"), (origins.len(), "file")]
        .map(|(n, what)| format!("{n} {what}{}", if n == 1 { "" } else { "s" }));
    let out = options.out.display();
    print_text(&format!("{left_out}{count} of {files} in {out}: stacklab report {out}\n"))
}

/// A file's content, and where it comes from.
fn one(path: &Path, options: &ImportOptions) -> Result<(ToolFile, Origin), Failure> {
    let name = path.display().to_string();
    let unreadable = |reason: io::Error| Failure::Import { file: name.clone(), reason: reason.to_string() };
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    let mut file = read(&bytes, options.format)
        .map_err(|error| Failure::Import { file: name.clone(), reason: error.to_string() })?;
    let mut overrides = Vec::new();
    if let Content::Tests(tests) = &mut file.content {
        overrides = tell(tests, options, &name)?;
    }
    let sha256 = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    let origin = Origin {
        tool: file.format.tool().to_owned(),
        version: file.version.clone(),
        file: name,
        sha256,
        overrides: overrides.join(" "),
    };
    Ok((file, origin))
}

/// Adds the options' words to a file's tests, and gives those that were needed.
fn tell(tests: &mut [ToolTest], options: &ImportOptions, name: &str) -> Result<Vec<String>, Failure> {
    let ImportOptions { family, transport, size, .. } = *options;
    let words = [
        (family.map(|family| format!("family={family}")), Untold::Family),
        (transport.map(|transport| format!("transport={transport}")), Untold::Transport),
        (size.map(|size| format!("size={size}")), Untold::Size),
    ];
    let mut needed: BTreeMap<Untold, String> = BTreeMap::new();
    for test in tests {
        let untold = test.cell().err().unwrap_or_default();
        test.tell(family, transport, size)
            .map_err(|what| Failure::Usage(format!("{name} contradicts {}: leave it out", option(what))))?;
        fits(test, size, name)?;
        let words = words.iter().filter(|(_, what)| untold.contains(what));
        needed.extend(words.filter_map(|(word, what)| Some((*what, word.clone()?))));
    }
    Ok(needed.into_values().collect())
}

/// Refuses a size from the command line that no datagram has.
fn fits(test: &ToolTest, size: Option<u32>, name: &str) -> Result<(), Failure> {
    let (Some(size), Some(Transport::Udp), Some(family)) = (size, test.transport, test.family) else {
        return Ok(());
    };
    let most = family.largest_packet_bytes() - family.header_bytes() - Transport::Udp.header_bytes();
    if size > most {
        return Err(Failure::Usage(format!(
            "{name}: a UDP datagram over {family} holds at most {most} bytes, and not --size {size}"
        )));
    }
    Ok(())
}

fn option(what: Untold) -> &'static str {
    match what {
        Untold::Family => "--family",
        Untold::Transport => "--transport",
        Untold::Size => "--size",
    }
}

/// Why a test belongs to no cell.
fn untold(path: &Path, file: &ToolFile, number: usize) -> Failure {
    let Content::Tests(tests) = &file.content else { return Failure::Usage(String::new()) };
    let missing = tests[number].cell().err().unwrap_or_default();
    let options = missing.iter().map(|what| option(*what)).collect::<Vec<_>>().join(" and ");
    Failure::Usage(format!(
        "{}, test {}: the file does not state everything that a run needs: add {options}",
        path.display(),
        number + 1
    ))
}

/// `iperf3 3.12 (a.json, b.json and 2 more)`.
fn said(origins: &[Origin]) -> String {
    let mut tools: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for Origin { tool, version, file, .. } in origins {
        let tool = version.as_ref().map_or_else(|| tool.clone(), |version| format!("{tool} {version}"));
        let name = Path::new(file).file_name().map_or(file.as_str().into(), |name| name.to_string_lossy());
        tools.entry(printable_text(&tool)).or_default().push(printable_text(&name));
    }
    let tool = |(tool, files): (&String, &Vec<String>)| {
        let more = if files.len() > 2 { format!(" and {} more", files.len() - 2) } else { String::new() };
        format!("{tool} ({}{more})", files.iter().take(2).cloned().collect::<Vec<_>>().join(", "))
    };
    tools.iter().map(tool).collect::<Vec<_>>().join(", ")
}
