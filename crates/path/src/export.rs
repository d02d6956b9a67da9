//! Figures of a path for monitoring: Prometheus reads them at /metrics.

use crate::findings::{ComparedMetric, Rounds, compare};
use stacklab_model::{Family, Interval, Verdict};
use stacklab_report::prometheus::{CONTENT_TYPE, Gauge, exposition};
use stacklab_report::verdict_name;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a client may take for its request, and for the answer.
const LIMIT: Duration = Duration::from_secs(2);
const ROOM: usize = 8 << 10;

pub(crate) fn gauges(looks: &[Rounds], margin: f64) -> Vec<Gauge> {
    let mut last = Gauge::new("stacklab_path_last", "Figure of the last round, in its unit.");
    let mut median = Gauge::new("stacklab_path_median", "Median of the rounds, in its unit.");
    let mut ratio = Gauge::new("stacklab_path_ratio", "IPv6 divided by IPv4: estimate and 95 % interval.");
    let mut verdict = Gauge::new("stacklab_path_verdict", "1 for the verdict that holds.");
    let mut works =
        Gauge::new("stacklab_path_family_works", "1 if each request over the family was answered.");
    let mut rounds = Gauge::new("stacklab_path_rounds", "Rounds so far.");
    for (look, compared) in looks.iter().zip(compare(looks, margin, false)) {
        let target = ("target", look.target.name.clone());
        rounds.samples.push((vec![target.clone()], look.count as f64));
        for &family in Family::ALL {
            let labels = vec![target.clone(), ("family", family.to_string())];
            works.samples.push((labels, f64::from(u8::from(look.state(family).works()))));
        }
        for ComparedMetric { metric, families, effect, verdict: found, .. } in compared {
            let of_metric = vec![
                target.clone(),
                ("metric", metric.name().to_owned()),
                ("unit", metric.unit().to_owned()),
                ("transport", metric.transport().to_owned()),
            ];
            for (family, of) in &families {
                let mut labels = of_metric.clone();
                labels.push(("family", family.to_string()));
                if let Some(Ok(figure)) = look.last().and_then(|round| round.get(&(metric, *family))) {
                    last.samples.push((labels.clone(), *figure));
                }
                median.samples.extend(of.median.map(|median| (labels, median)));
            }
            if let Some(effect) = effect {
                let Interval { low, high } = effect.interval95;
                ratio.interval(&of_metric, Some(effect.estimate), Some([low, high]));
            }
            let better = if let Verdict::Better(family) = &found { family } else { "" };
            verdict.verdict(&of_metric, verdict_name(&found), better);
        }
    }
    vec![last, median, ratio, verdict, works, rounds]
}

/// Serves the figures at /metrics, to one client after another.
pub(crate) struct Exporter {
    text: Arc<Mutex<String>>,
    pub address: SocketAddr,
}

impl Exporter {
    pub(crate) fn start(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let exporter = Exporter { text: Arc::default(), address: listener.local_addr()? };
        let text = Arc::clone(&exporter.text);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let text = text.lock().unwrap_or_else(PoisonError::into_inner).clone();
                // A client that is gone or silent has no answer.
                let _ = answer(&stream, &text);
            }
        });
        Ok(exporter)
    }

    pub(crate) fn show(&self, gauges: &[Gauge]) {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = exposition(gauges);
    }
}

fn answer(mut stream: &TcpStream, metrics: &str) -> io::Result<()> {
    stream.set_write_timeout(Some(LIMIT))?;
    let mut request = Vec::new();
    let mut room = [0; 1024];
    let began = Instant::now();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = LIMIT.checked_sub(began.elapsed()).filter(|left| !left.is_zero() && request.len() < ROOM);
        stream.set_read_timeout(Some(left.ok_or(io::ErrorKind::TimedOut)?))?;
        match stream.read(&mut room)? {
            0 => return Ok(()),
            length => request.extend_from_slice(&room[..length]),
        }
    }
    let is_asked =
        [&b"GET /metrics HTTP/1."[..], b"GET /metrics?"].iter().any(|asked| request.starts_with(asked));
    let (status, body) =
        if is_asked { ("200 OK", metrics) } else { ("404 Not Found", "figures are at /metrics\n") };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}
