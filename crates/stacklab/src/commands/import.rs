//! `stacklab import`: result files of other tools as a record.

use crate::failure::{Failure, IMPORT, RECORD};
use crate::output::print_lines;
use crate::quantities::{bytes, parse_compared_metric};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use sha2::{Digest, Sha256};
use stacklab_analysis::count_warnings;
use stacklab_campaign::record::{IMPORTED, ImportedStudy};
use stacklab_campaign::sources::StudySource;
use stacklab_import::{
    Content, EmptyMetrics, Format, ImportedRun, MAX_BYTES, PlainText, ToolFile, ToolTest, Untold,
    leave_out_empty, leave_out_repeats, read_plain, read_rows, runs, starts_rows,
};
use stacklab_model::{Family, Metric, Transport, count, printable_text, quote_file};
use stacklab_report::list_warnings;
use stacklab_store::{Campaign, Imported, Origin, Record};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

/// How much of a file says whether it has rows of an export.
const MAX_BEGIN_BYTES: u64 = 16;

#[derive(Debug, Args)]
pub(crate) struct ImportOptions {
    /// Result files of iperf3, iperf, netperf, D-ITG, flent or `stacklab export`
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// The record to create; it must not exist
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// The format of all files; default: detected from each file's content
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    pub format: Option<Format>,
    /// Address family, if a file does not state it
    #[arg(long, value_name = "FAMILY")]
    pub family: Option<Family>,
    /// Transport protocol, if a file does not state it
    #[arg(long, value_name = "TRANSPORT")]
    pub transport: Option<Transport>,
    /// Bytes per send call, if a file does not state them
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub size: Option<u32>,
    /// Margin in per cent: smaller differences of rates and times are equivalent
    #[arg(long, value_name = "PERCENT", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=99))]
    pub margin: u8,
    /// Compare only this metric; may be repeated
    #[arg(long = "metric", value_name = "NAME", value_parser = parse_compared_metric)]
    pub metrics: Vec<Metric>,
    /// Title of reports
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
}

fn formats() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::names())
        .map(|name| Format::find_by_name(&name).expect("only these names are possible"))
}

pub(crate) fn import(options: &ImportOptions) -> Result<(), Failure> {
    if options.out.exists() {
        let out = printable_text(&options.out.display().to_string());
        let text = format!("{out} exists already: name another file with --out, or remove it");
        return Err(Failure::new(RECORD, text));
    }
    let ReadFiles { mut files, origins, copies } = read_files(options)?;
    let names: Vec<String> = origins.iter().map(|origin| printable_text(&origin.file)).collect();
    leave_out_repeats(&mut files, &names);
    let mut runs = runs(&files).map_err(|(file, test)| untold(&options.files[file], &files[file], test))?;
    let left_out = files.iter().zip(&origins).flat_map(|(file, origin)| {
        file.left_out
            .iter()
            .map(|what| format!("left out of {}: {}\n", printable_text(&origin.file), printable_text(what)))
    });
    let left_out: String = std::iter::once(copies).chain(left_out).collect();
    if runs.is_empty() {
        return Err(Failure::new(IMPORT, format!("{left_out}no test to import: nothing was written")));
    }
    let left_out = left_out + &describe_empty(&leave_out_empty(&files, &mut runs, &options.metrics));
    let notes = left_out + &describe_warnings(&runs);
    let text = describe_origins(&origins);
    let title = options.title.clone().unwrap_or_else(|| format!("Imported: {text}"));
    let study = ImportedStudy::new(title, f64::from(options.margin) / 100.0, options.metrics.clone());
    let campaign = Campaign {
        seed: 0,
        testbed_description: format!("imported, not measured by this program: {text}"),
        ..StudySource { name: IMPORTED.to_owned(), text: study.to_text() }.campaign()
    };
    let mut imported = Vec::new();
    for (file, run, series) in runs {
        imported.push(Imported { origin: origins[file].clone(), run, series });
    }
    Record::import(&options.out, &campaign, &imported)?;
    let runs = count(imported.len(), "run");
    let files = count(origins.len(), "file");
    let out = options.out.display();
    let word = quote_file(&options.out);
    print_lines(&format!("{notes}{runs} of {files} in {out}: stacklab report {word}\n"))
}

/// Files with different contents, where each is from, and a line for each that was left out.
#[derive(Default)]
struct ReadFiles {
    files: Vec<ToolFile>,
    origins: Vec<Origin>,
    copies: String,
}

/// Reads all files. An error names all of those that cannot be read, so that one more run is enough.
fn read_files(options: &ImportOptions) -> Result<ReadFiles, Failure> {
    let mut read = ReadFiles::default();
    let mut texts: Vec<String> = Vec::new();
    let mut bad = Vec::new();
    for path in &options.files {
        match one(path, options) {
            Ok(copy) if texts.contains(&copy.text_sha256) => {
                let file = printable_text(&copy.origin.file);
                read.copies += &format!("left out: {file}: a file before it has the same content\n");
            }
            Ok(ReadFile { file, origin, text_sha256 }) => {
                read.files.push(file);
                read.origins.push(origin);
                texts.push(text_sha256);
            }
            Err(failure) if failure.code == IMPORT => bad.push(failure.printable_reason()),
            Err(failure) => return Err(failure),
        }
    }
    if !bad.is_empty() {
        let text = format!("could not import {}; nothing was written", bad.join("\n"));
        return Err(Failure::new(IMPORT, text));
    }
    Ok(read)
}

/// A file's tests, where they are from, and the hash of its text: equal for the same text in another form.
struct ReadFile {
    file: ToolFile,
    origin: Origin,
    text_sha256: String,
}

fn one(path: &Path, options: &ImportOptions) -> Result<ReadFile, Failure> {
    let name = path.display().to_string();
    let mut hashes = Hashes::default();
    let mut file = content(path, options.format, &mut hashes)
        .map_err(|reason| Failure::new(IMPORT, format!("{}: {reason}", printable_text(&name))))?;
    let mut overrides = Vec::new();
    if let Content::Tests(tests) = &mut file.content {
        overrides = tell(tests, options, &name)?;
    }
    let origin = Origin {
        tool: file.format.tool().to_owned(),
        version: file.version.clone(),
        file: name,
        sha256: hexadecimal(hashes.file),
        overrides: overrides.join(" "),
    };
    Ok(ReadFile { file, origin, text_sha256: hexadecimal(hashes.text) })
}

/// Hashes of a file, and of its text: unpacked, without what stands before each line, and with the line ends of Unix.
#[derive(Default)]
struct Hashes {
    file: Sha256,
    text: Sha256,
}

fn hexadecimal(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads a file and adds its bytes to the hashes. Rows of an export are read one after another, whatever their number.
fn content(path: &Path, format: Option<Format>, hashes: &mut Hashes) -> Result<ToolFile, String> {
    let mut file = File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.by_ref().take(MAX_BEGIN_BYTES).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if starts_rows(&bytes) && format.is_none_or(|format| format == Format::Csv) {
        let mut rows = Hashed { inner: Cursor::new(bytes).chain(file), hashes };
        return read_rows(&mut rows).map_err(|error| error.to_string());
    }
    let most = MAX_BYTES as u64 + 1;
    file.take(most).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    hashes.file.update(&bytes);
    let plain = PlainText::unpack(&bytes).map_err(|error| error.to_string())?;
    for line in plain.text().lines() {
        hashes.text.update(line);
        hashes.text.update("\n");
    }
    read_plain(&plain, format).map_err(|error| error.to_string())
}

/// Bytes that are added to hashes as they are read.
struct Hashed<'a, R> {
    inner: R,
    hashes: &'a mut Hashes,
}

impl<R: Read> Read for Hashed<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.hashes.file.update(&buffer[..count]);
        for part in buffer[..count].split(|byte| *byte == b'\r') {
            self.hashes.text.update(part);
        }
        Ok(count)
    }
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
            .map_err(|what| Failure::usage(format!("{name} contradicts {}: leave it out", option(what))))?;
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
        return Err(Failure::usage(format!(
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

fn untold(path: &Path, file: &ToolFile, number: usize) -> Failure {
    let Content::Tests(tests) = &file.content else { return Failure::usage(String::new()) };
    let missing = tests[number].cell().err().unwrap_or_default();
    let options = missing.iter().map(|what| option(*what)).collect::<Vec<_>>().join(" and ");
    Failure::usage(format!(
        "{}, test {}: the file does not state everything that a run needs: add {options}",
        path.display(),
        number + 1
    ))
}

/// The metrics that no run has a figure of, and why, on one line; nothing if there are none.
fn describe_empty(empty: &EmptyMetrics) -> String {
    let metrics: Vec<String> = empty
        .iter()
        .map(|((transport, metric), reason)| format!("{metric} over {transport} ({reason})"))
        .collect();
    if metrics.is_empty() {
        String::new()
    } else {
        format!("left out, without any figure: {}\n", metrics.join("; "))
    }
}

/// What the record warns of, each kind once, on a line: a reader should not have to ask for a report first.
fn describe_warnings(runs: &[ImportedRun]) -> String {
    let mut text = String::new();
    for warning in list_warnings(&count_warnings(runs.iter().map(|(_, run, _)| run))) {
        text += &printable_text(&warning);
        text.push('\n');
    }
    text
}

/// `iperf3 3.12 (a.json, b.json and 2 more)`.
fn describe_origins(origins: &[Origin]) -> String {
    let mut tools: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for Origin { tool, version, file, .. } in origins {
        let tool = version.as_ref().map_or_else(|| tool.clone(), |version| format!("{tool} {version}"));
        let name = Path::new(file).file_name().map_or(file.as_str().into(), |name| name.to_string_lossy());
        tools.entry(printable_text(&tool)).or_default().push(printable_text(&name));
    }
    let mut described = Vec::new();
    for (tool, files) in &tools {
        let names = files.iter().take(2).cloned().collect::<Vec<_>>().join(", ");
        let more = if files.len() > 2 { format!(" and {} more", files.len() - 2) } else { String::new() };
        described.push(format!("{tool} ({names}{more})"));
    }
    described.join(", ")
}
