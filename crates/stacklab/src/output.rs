//! Writes the output of a command: into a file, or on standard output.

use crate::colour;
use crate::failure::Failure;
use stacklab_campaign::notice::{note, wrap_for_stdout};
use stacklab_report::{WIDTH, Width};
use stacklab_traffic::sign_of_life::SignOfLife;
use std::borrow::Cow;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Writes output made from a record into a file, or on standard output without a file name. The file is replaced
/// atomically.
pub(crate) fn output(record: &Path, path: Option<&Path>, bytes: &[u8]) -> Result<(), Failure> {
    match path {
        // On a terminal, text has its verdicts in colour.
        None => print_bytes(bytes),
        Some(_) => output_with(record, path, |to| Ok(to.write_all(bytes)?)),
    }
}

/// Why output that is made while it is written could not be.
pub(crate) enum NotWritten {
    Made(Failure),
    Written(io::Error),
}

impl NotWritten {
    fn into_failure(self, attempted: &str) -> Failure {
        match self {
            NotWritten::Made(failure) => failure,
            NotWritten::Written(reason) => Failure::step(attempted)(reason),
        }
    }
}

impl From<io::Error> for NotWritten {
    fn from(error: io::Error) -> Self {
        NotWritten::Written(error)
    }
}

/// The same with output that is made while it is written.
pub(crate) fn output_with(
    record: &Path,
    path: Option<&Path>,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), NotWritten>,
) -> Result<(), Failure> {
    let Some(path) = path else {
        let mut stdout = BufWriter::new(io::stdout());
        PRINTED.store(true, Ordering::Relaxed);
        return match write(&mut stdout).and_then(|()| Ok(stdout.flush()?)) {
            Err(NotWritten::Written(reason)) if reason.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written.map_err(|error| error.into_failure("write to standard output")),
        };
    };
    let is_record =
        record.canonicalize().is_ok_and(|record| path.canonicalize().is_ok_and(|path| path == record));
    if is_record {
        return Err(Failure::usage(format!(
            "--out names the record itself, {}, which would be lost: name another file",
            path.display()
        )));
    }
    let written = stacklab_store::replace_with(path, |file| write(file));
    written.map_err(|error| error.into_failure(&format!("write {}", path.display())))
}

/// Whether something is on standard output.
static PRINTED: AtomicBool = AtomicBool::new(false);

/// Prints an error as JSON on standard output where JSON was asked for and nothing was printed: a program reads why.
pub(crate) fn print_error_for_programs(error: &str, exit_code: u8) {
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    if asks_for_json(&words) && !PRINTED.load(Ordering::Relaxed) {
        let document = serde_json::json!({ "error": error, "exit_code": exit_code });
        // The error itself matters more than that it could not be printed twice.
        let _ = print_text(&format!("{document:#}\n"));
    }
}

/// Whether a command line asks for JSON. What follows `--` is another program's.
fn asks_for_json(words: &[String]) -> bool {
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let words = &words[..end];
    words.iter().any(|word| word == "--json" || word == "--format=json")
        || words.windows(2).any(|pair| pair[0] == "--format" && pair[1] == "json")
}

/// Runs a step that may take long, as guests do that boot. Every five seconds a line on standard error says for how
/// long.
pub(crate) fn show_seconds<T>(what: &str, step: impl FnOnce() -> T) -> T {
    let sign_of_life =
        SignOfLife::new(|what, seconds| note(&format!("stacklab: {what}: {seconds} s so far")));
    sign_of_life.begin(what.to_owned());
    step()
}

/// The width of text on standard output: the terminal's, if it is one.
pub(crate) fn width() -> Width {
    match terminal_size::terminal_size_of(io::stdout()) {
        Some((terminal_size::Width(columns), _)) if io::stdout().is_terminal() => {
            Width::of_terminal(columns.into())
        }
        _ => WIDTH,
    }
}

/// Prints text on standard output. A reader that closes early (`| head`) is not a failure.
pub(crate) fn print_text(text: &str) -> Result<(), Failure> {
    print_bytes(text.as_bytes())
}

/// The same for lines that were not laid out for the terminal's width: they break between words there.
pub(crate) fn print_lines(text: &str) -> Result<(), Failure> {
    print_text(&wrap_for_stdout(text))
}

pub(crate) fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    write_stdout(bytes).map_err(Failure::step("write to standard output"))
}

pub(crate) fn write_stdout(bytes: &[u8]) -> io::Result<()> {
    PRINTED.store(true, Ordering::Relaxed);
    match io::stdout().lock().write_all(&paint_text(bytes, colour::is_wanted())) {
        Err(reason) if reason.kind() != io::ErrorKind::BrokenPipe => Err(reason),
        _ => Ok(()),
    }
}

/// Text with its verdicts in colour where colours are wanted. Other bytes, such as those of a PDF, stay as they are.
fn paint_text(bytes: &[u8], is_wanted: bool) -> Cow<'_, [u8]> {
    match std::str::from_utf8(bytes) {
        Ok(text) if is_wanted => Cow::Owned(colour::paint(text).into_bytes()),
        _ => Cow::Borrowed(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::OTHER;

    #[test]
    fn text_is_painted_where_colours_are_wanted() {
        let row = b"128 B  1  2  inconclusive\n";
        assert_eq!(&*paint_text(row, true), b"128 B  1  2  \x1b[33minconclusive\x1b[0m\n");
        assert_eq!(&*paint_text(row, false), row);
        let pdf = b"%PDF \xff  inconclusive\n";
        assert_eq!(&*paint_text(pdf, true), pdf);
    }

    fn asks(line: &str) -> bool {
        asks_for_json(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn json_is_asked_for_by_its_options_alone() {
        assert!(asks("stacklab measure tcp a --json") && asks("stacklab path a --format json"));
        assert!(asks("stacklab path a --format=json"));
        assert!(!asks("stacklab report json --format text") && !asks("stacklab lab enter a -- ip --json"));
    }

    #[test]
    fn the_record_itself_is_never_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let record = folder.path().join("a.stacklab");
        std::fs::write(&record, "a record").unwrap();
        let mut names = vec![record.clone(), folder.path().join(".").join("a.stacklab")];
        #[cfg(unix)]
        {
            let link = folder.path().join("link.html");
            std::os::unix::fs::symlink(&record, &link).unwrap();
            names.push(link);
        }
        for out in names {
            let refusal = output(&record, Some(&out), b"a report").unwrap_err();
            assert!(refusal.printable_reason().contains("the record itself"), "{refusal:?}");
            assert_eq!(std::fs::read(&record).unwrap(), b"a record");
        }
    }

    #[test]
    fn a_file_is_written_as_a_whole_or_stays_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let [record, out] = ["a.stacklab", "a.html"].map(|name| folder.path().join(name));
        for text in ["longer than the next", "short"] {
            output(&record, Some(&out), text.as_bytes()).unwrap();
            assert_eq!(std::fs::read(&out).unwrap(), text.as_bytes());
        }
        let names = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(names.collect::<Vec<_>>(), ["a.html"]);
        // The temporary file cannot be written.
        std::fs::create_dir(folder.path().join(".a.html.part")).unwrap();
        let failure = output(&record, Some(&out), b"new").unwrap_err();
        assert_eq!(failure.code, OTHER, "{failure:?}");
        assert_eq!(std::fs::read(&out).unwrap(), b"short");
    }

    #[cfg(unix)]
    #[test]
    fn device_is_written_straight_and_a_link_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let [record, out, link] = ["a.stacklab", "a.html", "link.html"].map(|name| folder.path().join(name));
        output(&record, Some(Path::new("/dev/null")), b"gone").unwrap();
        assert!(!Path::new("/dev/.null.part").exists() && !std::fs::metadata("/dev/null").unwrap().is_file());
        std::fs::write(&out, "old").unwrap();
        std::os::unix::fs::symlink(&out, &link).unwrap();
        output(&record, Some(&link), b"new").unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read(&out).unwrap(), b"new");
    }
}
