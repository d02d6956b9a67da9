//! Long data of a run in a small form: JSON, compressed by zlib (RFC 1950). A histogram's values ascend, and are their
//! differences there, which are short.

use crate::open::{from_json, not_understood, to_json};
use flate2::Compression;
use flate2::bufread::ZlibDecoder;
use flate2::write::ZlibEncoder;
use rusqlite::{Connection, OptionalExtension, params};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use stacklab_model::{Buckets, Delays, HostReport, MAX_NUMBER, Slice};
use std::io::{Read, Write};

/// Largest JSON of a run in a column, bytes: four hosts with as many slices as an agent takes have less.
const MAX_UNPACKED: u64 = 64 << 20;

/// A host's delays.
#[derive(Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PackedDelays {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delays: Option<Histogram>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    interface_delays: Option<Histogram>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pacing_error: Option<Histogram>,
}

#[derive(PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Histogram {
    mean_ns: f64,
    jitter_ns: Option<f64>,
    jitter_rfc3550_ns: Option<f64>,
    /// The first value, and from there on the difference of each value to the one before, nanoseconds.
    steps: Vec<i64>,
    /// How often each value was seen.
    counts: Vec<u64>,
}

/// Round, messages, at_first, first_ns, last_ns, delay_ns, jitter_ns, cpu_ns, waited_ns.
type PackedSlice = (u32, u64, u64, u64, u64, Option<u64>, Option<f64>, Option<u64>, Option<u64>);

/// Adds the reports of a run's hosts.
pub(crate) fn insert_reports(
    connection: &Connection,
    run: i64,
    reports: &[HostReport],
) -> rusqlite::Result<()> {
    if reports.is_empty() {
        return Ok(());
    }
    let rest: Vec<HostReport> = reports.iter().map(without_delays).collect();
    let mut add = connection.prepare_cached("INSERT INTO packed_reports (run, reports) VALUES (?1, ?2)")?;
    add.execute(params![run, pack(&rest)])?;
    let delays: Vec<PackedDelays> = reports.iter().map(PackedDelays::of).collect();
    if delays.iter().any(|delays| *delays != PackedDelays::default()) {
        let mut add = connection.prepare_cached("INSERT INTO packed_delays (run, delays) VALUES (?1, ?2)")?;
        add.execute(params![run, pack(&delays)])?;
    }
    if reports.iter().any(|report| !report.slices.is_empty()) {
        let slices: Vec<Vec<PackedSlice>> =
            reports.iter().map(|report| report.slices.iter().map(pack_slice).collect()).collect();
        let mut add = connection.prepare_cached("INSERT INTO packed_slices (run, slices) VALUES (?1, ?2)")?;
        add.execute(params![run, pack(&slices)])?;
    }
    Ok(())
}

/// The reports of a run's hosts, in the order in which they were added; empty if there are none.
pub(crate) fn select_reports(connection: &Connection, run: i64) -> rusqlite::Result<Vec<HostReport>> {
    let reports: Option<Vec<HostReport>> = unpack(connection, "packed_reports", "reports", run)?;
    let mut reports = reports.unwrap_or_default();
    let delays: Option<Vec<PackedDelays>> = unpack(connection, "packed_delays", "delays", run)?;
    if let Some(delays) = delays {
        check_hosts(run, "packed_delays", &reports, delays.len())?;
        for (report, of_host) in reports.iter_mut().zip(delays) {
            report.delays = of_host.delays.map(Histogram::unpack).transpose()?;
            report.interface_delays = of_host.interface_delays.map(Histogram::unpack).transpose()?;
            report.pacing_error = of_host.pacing_error.map(Histogram::unpack).transpose()?;
        }
    }
    let slices: Option<Vec<Vec<PackedSlice>>> = unpack(connection, "packed_slices", "slices", run)?;
    if let Some(slices) = slices {
        check_hosts(run, "packed_slices", &reports, slices.len())?;
        for (report, of_host) in reports.iter_mut().zip(slices) {
            report.slices = of_host.into_iter().map(unpack_slice).collect();
        }
    }
    Ok(reports)
}

fn check_hosts(run: i64, table: &str, reports: &[HostReport], hosts: usize) -> rusqlite::Result<()> {
    if reports.len() == hosts {
        return Ok(());
    }
    let hosts = format!("{table} of run {run} is of {hosts} hosts, and packed_reports of {}", reports.len());
    Err(not_understood(hosts.into()))
}

fn without_delays(report: &HostReport) -> HostReport {
    let delays = None;
    let interface_delays = None;
    let pacing_error = None;
    HostReport { delays, interface_delays, pacing_error, slices: Vec::new(), ..report.clone() }
}

impl PackedDelays {
    fn of(report: &HostReport) -> Self {
        PackedDelays {
            delays: report.delays.as_ref().map(Histogram::of),
            interface_delays: report.interface_delays.as_ref().map(Histogram::of),
            pacing_error: report.pacing_error.as_ref().map(Histogram::of),
        }
    }
}

impl Histogram {
    fn of(delays: &Delays) -> Self {
        let Delays { buckets: Buckets(buckets), mean_ns, jitter_ns, jitter_rfc3550_ns } = delays;
        let mut before = 0;
        let mut steps = Vec::with_capacity(buckets.len());
        for (value, _) in buckets {
            steps.push(value.wrapping_sub(before) as i64);
            before = *value;
        }
        Histogram {
            mean_ns: *mean_ns,
            jitter_ns: *jitter_ns,
            jitter_rfc3550_ns: *jitter_rfc3550_ns,
            steps,
            counts: buckets.iter().map(|(_, count)| *count).collect(),
        }
    }

    fn unpack(self) -> rusqlite::Result<Delays> {
        let Histogram { mean_ns, jitter_ns, jitter_rfc3550_ns, steps, counts } = self;
        if steps.len() != counts.len() {
            let lengths = format!("delays have {} steps and {} counts", steps.len(), counts.len());
            return Err(not_understood(lengths.into()));
        }
        let mut value = 0_u64;
        let mut buckets = Vec::with_capacity(steps.len());
        for (step, count) in steps.into_iter().zip(counts) {
            let next = value.checked_add_signed(step).filter(|next| *next <= MAX_NUMBER);
            value = next.ok_or_else(|| not_understood("a delay is out of bounds".into()))?;
            buckets.push((value, count));
        }
        Ok(Delays { buckets: Buckets(buckets), mean_ns, jitter_ns, jitter_rfc3550_ns })
    }
}

fn pack_slice(slice: &Slice) -> PackedSlice {
    let Slice { round, messages, at_first, first_ns, last_ns, delay_ns, jitter_ns, cpu_ns, waited_ns } =
        *slice;
    (round, messages, at_first, first_ns, last_ns, delay_ns, jitter_ns, cpu_ns, waited_ns)
}

fn unpack_slice(slice: PackedSlice) -> Slice {
    let (round, messages, at_first, first_ns, last_ns, delay_ns, jitter_ns, cpu_ns, waited_ns) = slice;
    Slice { round, messages, at_first, first_ns, last_ns, delay_ns, jitter_ns, cpu_ns, waited_ns }
}

fn pack(value: &impl Serialize) -> Vec<u8> {
    compress(&to_json(value))
}

/// A packed column with this JSON.
pub(crate) fn compress(json: &str) -> Vec<u8> {
    const MEMORY: &str = "memory can be written to";
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(json.as_bytes()).expect(MEMORY);
    encoder.finish().expect(MEMORY)
}

/// A run's column of these tables; `None` if the run has no row.
fn unpack<T: DeserializeOwned>(
    connection: &Connection,
    table: &str,
    column: &str,
    run: i64,
) -> rusqlite::Result<Option<T>> {
    let mut query = connection.prepare_cached(&format!("SELECT {column} FROM {table} WHERE run = ?1"))?;
    let read = query.query_row([run], |row| {
        let text = inflate(row.get_ref(0)?.as_blob()?);
        text.map_err(|reason| not_understood(format!("{table}.{column} of run {run} {reason}").into()))
    });
    read.optional()?.map(|text| from_json(&text)).transpose()
}

/// No more than the largest JSON is ever in memory, whatever the compressed data stands for.
fn inflate(packed: &[u8]) -> Result<String, String> {
    let mut decoder = ZlibDecoder::new(packed).take(MAX_UNPACKED + 1);
    let mut text = Vec::new();
    decoder.read_to_end(&mut text).map_err(|e| format!("is not one whole zlib stream: {e}"))?;
    if text.len() as u64 > MAX_UNPACKED {
        return Err(format!("is out of bounds: it unpacks to more than {MAX_UNPACKED} bytes"));
    }
    if !decoder.into_inner().into_inner().is_empty() {
        return Err("has bytes behind its zlib stream".to_owned());
    }
    String::from_utf8(text).map_err(|e| format!("is not text: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deflate(text: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn no_data_unpacks_to_more_than_the_limit() {
        let most = vec![b' '; MAX_UNPACKED as usize + 1];
        assert!(inflate(&deflate(&most)).unwrap_err().contains("more than 67108864 bytes"));
        assert_eq!(inflate(&deflate(&most[1..])).map(|text| text.len()), Ok(MAX_UNPACKED as usize));
    }

    #[test]
    fn only_one_whole_stream_of_text_is_unpacked() {
        let whole = deflate(b"[]");
        assert_eq!(inflate(&whole), Ok("[]".to_owned()));
        assert!(inflate(&whole[..whole.len() - 1]).unwrap_err().contains("not one whole zlib stream"));
        assert!(inflate(b"").unwrap_err().contains("not one whole zlib stream"));
        assert!(inflate(&[&whole[..], b"x"].concat()).unwrap_err().contains("behind its zlib stream"));
        assert!(inflate(&deflate(b"\xff")).unwrap_err().contains("not text"));
    }

    fn make_delays(buckets: &[(u64, u64)]) -> Delays {
        Delays {
            buckets: Buckets(buckets.to_vec()),
            mean_ns: 0.1 + 0.2,
            jitter_ns: Some(1.0 / 3.0),
            jitter_rfc3550_ns: None,
        }
    }

    #[test]
    fn values_of_any_order_are_kept_and_others_refused() {
        for buckets in
            [&[][..], &[(10, 2), (20, 1), (1000, 7)], &[(20, 1), (10, 2), (10, 3)], &[(MAX_NUMBER, 1)]]
        {
            let wanted = make_delays(buckets);
            assert_eq!(Histogram::of(&wanted).unpack().unwrap(), wanted);
        }
        let steps = Histogram::of(&make_delays(&[(10, 2), (20, 1), (1000, 7)])).steps;
        assert_eq!(steps, [10, 10, 980]);
        for steps in [vec![-1], vec![i64::MAX], vec![5, -6], vec![1, 2]] {
            let counts = vec![1; if steps == [1, 2] { 1 } else { steps.len() }];
            let odd = Histogram { steps, counts, ..Histogram::of(&make_delays(&[])) };
            assert!(odd.unpack().is_err());
        }
    }
}
