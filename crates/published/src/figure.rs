//! Published figures.

use crate::rows::printed::Printed;
use crate::rows::{ReferenceError, rows};

/// One figure of a study.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedFigure {
    /// The study.
    pub source: String,
    /// Table, figure or section.
    pub location: String,
    /// The systems.
    pub os: String,
    /// Address family: `ipv4`, `ipv6`, `both`, or `6in4` for IPv6 in a tunnel.
    pub ip: String,
    /// `tcp`, `udp` or `both`.
    pub transport: String,
    /// Transition mechanism, or `none`.
    pub mechanism: String,
    /// How the hosts are connected.
    pub topology: String,
    /// The link.
    pub link: String,
    /// Bytes, or `all`, `min`, `max`.
    pub size: String,
    /// The study's metric.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// The figure.
    pub value: Printed,
}

const COLUMNS: &[&str] = &[
    "source",
    "location",
    "os",
    "ip",
    "transport",
    "mechanism",
    "topology",
    "link",
    "size_bytes",
    "metric",
    "unit",
    "value",
];

/// Reads `published.csv`.
pub(crate) fn read(text: &str) -> Result<Vec<PublishedFigure>, ReferenceError> {
    rows("published.csv", text, COLUMNS, |row| {
        Ok(PublishedFigure {
            source: row.source()?,
            location: row.filled("location")?,
            os: row.filled("os")?,
            ip: row.filled("ip")?,
            transport: row.filled("transport")?,
            mechanism: row.filled("mechanism")?,
            topology: row.filled("topology")?,
            link: row.filled("link")?,
            size: row.read("size_bytes", size)?,
            metric: row.filled("metric")?,
            unit: row.filled("unit")?,
            value: row.read("value", str::parse)?,
        })
    })
}

fn size(text: &str) -> Result<String, String> {
    if matches!(text, "all" | "min" | "max") || text.parse::<u32>().is_ok() {
        return Ok(text.to_owned());
    }
    Err(format!("`{text}` is not a number of bytes, nor all, min or max"))
}
