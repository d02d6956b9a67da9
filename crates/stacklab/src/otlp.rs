//! Figures for a collector of OpenTelemetry, by OTLP over HTTP.

use crate::failure::Failure;
use percent_encoding::percent_decode_str;
use rustls::crypto::ring;
use stacklab_interop::metrics::{
    Gauge, OTLP_CONTENT_TYPE, OTLP_METRICS_PATH, Resource, refused_points, requests,
};
use stacklab_model::printable_text;
use stacklab_traffic::host::unix_time::now_unix_ns;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use ureq::Agent;
use ureq::http::header::{AUTHORIZATION, CONTENT_TYPE};
use ureq::http::{HeaderName, HeaderValue, Uri};
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// How long a request may take in all, with the name's look-up and the answer.
const LIMIT: Duration = Duration::from_secs(3);
/// Most bytes of an answer that are read.
const MOST_ANSWER_BYTES: u64 = 64 << 10;
/// How much of an answer an error quotes, characters.
const QUOTED_CHARS: usize = 200;
/// Headers of each request, as OpenTelemetry's own programs take them: `name=value,name=value`, percent-encoded.
const HEADERS: [&str; 2] = ["OTEL_EXPORTER_OTLP_METRICS_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"];

/// Where a collector takes metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint(Uri);

impl FromStr for Endpoint {
    type Err = String;

    /// Without a path, it is the one of metrics.
    fn from_str(text: &str) -> Result<Self, String> {
        let uri: Uri = text.parse().map_err(|error| format!("it is not a URL: {error}"))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err("it begins with http:// or https://, as in http://localhost:4318".to_owned());
        }
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(format!(
                "names and passwords do not belong in it, but in the variable {}",
                HEADERS[1]
            ));
        }
        if !matches!(uri.path(), "" | "/") {
            return Ok(Endpoint(uri));
        }
        let (scheme, authority) = (uri.scheme_str().unwrap_or_default(), uri.authority());
        let authority = authority.map_or("", |authority| authority.as_str());
        let query = uri.query().map_or_else(String::new, |query| format!("?{query}"));
        let whole = format!("{scheme}://{authority}{OTLP_METRICS_PATH}{query}");
        whole.parse().map(Endpoint).map_err(|error| format!("it is not a URL: {error}"))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A collector that is given figures.
pub(crate) struct Collector {
    endpoint: Endpoint,
    agent: Agent,
    headers: Vec<(HeaderName, HeaderValue)>,
    resource: Resource,
    /// Whether the last figures did not reach it.
    fails: bool,
}

impl Collector {
    /// The collector at an endpoint. Nothing is sent yet.
    ///
    /// # Errors
    /// When the variable with the headers cannot be read.
    pub(crate) fn new(endpoint: &Endpoint) -> Result<Self, Failure> {
        let found = HEADERS.into_iter().find_map(|name| Some((name, std::env::var(name).ok()?)));
        let headers = found.map_or(Ok(Vec::new()), |(name, text)| {
            headers(&text).map_err(|reason| {
                Failure::Usage(format!(
                    "{name}: {reason}; expected is name=value,name=value, percent-encoded"
                ))
            })
        })?;
        let certificates = rustls_native_certs::load_native_certs().certs;
        let certificates = certificates.iter().map(|one| Certificate::from_der(one).to_owned()).collect();
        let tls = TlsConfig::builder()
            .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
            .root_certs(RootCerts::Specific(Arc::new(certificates)))
            .build();
        let agent = Agent::config_builder()
            .timeout_global(Some(LIMIT))
            .http_status_as_error(false)
            .max_redirects(0)
            .user_agent(concat!("stacklab/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls)
            .build()
            .new_agent();
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let resource =
            Resource { version: env!("CARGO_PKG_VERSION").to_owned(), host: host.trim().to_owned() };
        Ok(Collector { endpoint: endpoint.clone(), agent, headers, resource, fails: false })
    }

    /// Gives it the figures of now. What does not reach it is left out, and standard error says so: once, until figures
    /// reach it again.
    pub(crate) fn give(&mut self, gauges: &[Gauge]) {
        let given =
            requests(gauges, &self.resource, now_unix_ns()).try_for_each(|request| self.send(request));
        match &given {
            Ok(()) if self.fails => eprintln!("stacklab: figures reach {} again", self.endpoint),
            Err(reason) if !self.fails => {
                let to = &self.endpoint;
                eprintln!(
                    "stacklab: figures did not reach {to}: {reason}; measuring continues, and the next figures are sent again"
                );
            }
            _ => {}
        }
        self.fails = given.is_err();
    }

    /// Sends one request.
    fn send(&self, request: String) -> Result<(), String> {
        let mut asked = self.agent.post(&self.endpoint.0).header(CONTENT_TYPE, OTLP_CONTENT_TYPE);
        for (name, value) in &self.headers {
            asked = asked.header(name, value);
        }
        let mut answer = asked.send(request).map_err(|error| reason(&error))?;
        let status = answer.status();
        let body = answer.body_mut().with_config().limit(MOST_ANSWER_BYTES).read_to_vec();
        let body = body.map_err(|error| reason(&error))?;
        if !status.is_success() {
            let said = quoted(&String::from_utf8_lossy(&body));
            return Err(format!("it answered {status}{}{}", advice(status.as_u16()), said));
        }
        match refused_points(&body) {
            None => Ok(()),
            Some((count, why)) => Err(format!("it refused {count} figures{}", quoted(&why))),
        }
    }
}

/// What an error says, with what to do.
fn reason(error: &ureq::Error) -> String {
    let text = printable_text(&error.to_string());
    match error {
        ureq::Error::Timeout(_) => format!("no answer within {} s ({text})", LIMIT.as_secs()),
        ureq::Error::Tls(_) | ureq::Error::Rustls(_) => {
            format!(
                "{text} (SSL_CERT_FILE names certificates to trust; a collector without TLS is at http://)"
            )
        }
        _ => format!("{text} (is a collector's OTLP receiver for HTTP there? Its usual port is 4318)"),
    }
}

fn advice(status: u16) -> &'static str {
    match status {
        401 | 403 => " (headers are in the variable OTEL_EXPORTER_OTLP_HEADERS)",
        404 | 405 => " (the collector may use another path for metrics: name it in the URL)",
        415 => " (it does not accept JSON)",
        _ => "",
    }
}

/// The start of what a collector said, behind a colon; empty if it said nothing.
fn quoted(said: &str) -> String {
    let words: Vec<&str> = said.split_whitespace().collect();
    let start: String = printable_text(&words.join(" ")).chars().take(QUOTED_CHARS).collect();
    if start.is_empty() { start } else { format!(": {start}") }
}

/// The headers of a text such as `api-key=abc,Authorization=Basic%20eHl6`.
fn headers(text: &str) -> Result<Vec<(HeaderName, HeaderValue)>, String> {
    let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    let read = pairs.enumerate().map(|(place, pair)| {
        // Values are secrets, and are not repeated.
        let bad = || format!("header {} cannot be read", place + 1);
        let (name, value) = pair.split_once('=').ok_or_else(bad)?;
        let value = percent_decode_str(value.trim()).collect::<Vec<u8>>();
        let name: HeaderName = name.trim().parse().map_err(|_| bad())?;
        let mut value = HeaderValue::from_bytes(&value).map_err(|_| bad())?;
        value.set_sensitive(name == AUTHORIZATION);
        Ok((name, value))
    });
    read.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;
    use std::thread::{self, JoinHandle};

    fn endpoint(text: &str) -> Result<String, String> {
        text.parse::<Endpoint>().map(|endpoint| endpoint.to_string())
    }

    #[test]
    fn an_endpoint_without_a_path_gets_that_of_metrics() {
        for base in ["http://localhost:4318", "http://localhost:4318/"] {
            assert_eq!(endpoint(base).unwrap(), "http://localhost:4318/v1/metrics");
        }
        let with_query = endpoint("http://localhost:4318/?key=a").unwrap();
        assert_eq!(with_query, "http://localhost:4318/v1/metrics?key=a");
        let own = "https://[2001:db8::1]/api/v1/otlp/v1/metrics";
        assert_eq!(endpoint(own).unwrap(), own);
        for (text, reason) in [
            ("localhost:4318", "http://"),
            ("ftp://a", "http://"),
            ("http://me:pw@a", "OTEL"),
            ("a b", "URL"),
        ] {
            assert!(endpoint(text).unwrap_err().contains(reason), "{text}");
        }
    }

    #[test]
    fn headers_are_decoded_and_wrong_ones_are_told_without_their_value() {
        let read = headers("api-key=abc, Authorization=Basic%20eHl6=,").unwrap();
        let read: Vec<_> =
            read.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(read, [("api-key", "abc"), ("authorization", "Basic eHl6=")]);
        for wrong in ["secret", "a=b,sec ret=x", "a=%0asecret"] {
            let told = headers(wrong).unwrap_err();
            assert!(!told.contains("sec") && told.contains("header"), "{told}");
        }
    }

    /// A collector that gives one client after another these answers, and what it was asked.
    fn collector(answers: &'static [&'static str]) -> (Endpoint, JoinHandle<Vec<(String, String)>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = format!("http://{}", listener.local_addr().unwrap());
        let asked = thread::spawn(move || {
            let answer = |answer: &&str| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") {
                    assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
                }
                let lower = head.to_lowercase();
                let length = lower.split_once("content-length: ").unwrap().1.lines().next().unwrap();
                let mut body = vec![0; length.parse().unwrap()];
                reader.read_exact(&mut body).unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
                (head, String::from_utf8(body).unwrap())
            };
            answers.iter().map(answer).collect()
        });
        (at.parse().unwrap(), asked)
    }

    fn gauges() -> Vec<Gauge> {
        vec![Gauge { name: "stacklab_x", help: "A help.", samples: vec![(Vec::new(), 0.5)] }]
    }

    fn send(to: &Collector) -> Result<(), String> {
        requests(&gauges(), &to.resource, 1).try_for_each(|request| to.send(request))
    }

    #[test]
    fn a_collector_is_asked_to_take_figures_and_what_it_does_not_take_is_told() {
        let (at, asked) = collector(&[
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}",
            "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n\
             43\r\n{\"partialSuccess\":{\"rejectedDataPoints\":\"1\",\"errorMessage\":\"late\"}}\r\n0\r\n\r\n",
            "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 5\r\n\r\nb\u{1b}usy",
            "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        ]);
        let to = Collector::new(&at).unwrap();
        assert_eq!(send(&to), Ok(()));
        assert_eq!(send(&to), Err("it refused 1 figures: late".to_owned()));
        assert_eq!(send(&to), Err("it answered 503 Service Unavailable: b\u{fffd}usy".to_owned()));
        assert!(send(&to).unwrap_err().contains("another path for metrics"));
        for (head, body) in asked.join().unwrap() {
            assert!(head.starts_with("POST /v1/metrics HTTP/1.1\r\n"), "{head}");
            assert!(head.to_lowercase().contains("content-type: application/json\r\n"), "{head}");
            assert!(body.contains("\"asDouble\":0.5"), "{body}");
        }
    }

    #[test]
    fn a_collector_that_is_gone_or_silent_takes_a_bounded_time() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = format!("http://{}", listener.local_addr().unwrap());
        let to = Collector::new(&at.parse().unwrap()).unwrap();
        let began = std::time::Instant::now();
        let told = send(&to).unwrap_err();
        assert!(told.contains("no answer within 3 s"), "{told}");
        assert!(began.elapsed() < 3 * LIMIT);
        drop(listener);
        let told = send(&to).unwrap_err();
        assert!(told.contains("4318"), "{told}");
    }
}
