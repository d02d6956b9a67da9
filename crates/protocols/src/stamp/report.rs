//! The report of a session, as text and JSON.

use crate::stamp::{
    ClassOfService, Extensions, LossByDirection, PeerClock, SENDER_TTL, SessionFigures, TimestampInfo, Ways,
};
use serde_json::{Map, Value, json};
use stacklab_model::{Delays, printable_lines};
use stacklab_traffic::peer::ExchangeResult;
use std::fmt::Write;

/// A session and what it gave.
#[derive(Debug)]
pub struct Measured {
    /// The host as the user named it.
    pub host: String,
    /// Own address.
    pub from: String,
    /// The reflector.
    pub to: String,
    /// Number of the session.
    pub session: u16,
    /// Whether packets are authenticated.
    pub authenticated: bool,
    /// Octets of a packet.
    pub bytes: usize,
    /// Packets per second.
    pub per_second: f64,
    /// What the reflector said in TLVs.
    pub said: Option<Extensions>,
    /// Counts.
    pub exchange: ExchangeResult,
    /// Delays and losses.
    pub figures: SessionFigures,
}

const PERCENTILES: [(&str, f64); 5] =
    [("least", 0.0), ("median", 0.5), ("p95", 0.95), ("p99", 0.99), ("most", 1.0)];

fn ms(ns: f64) -> f64 {
    ns / 1e6
}

fn name_ways(Ways { forward, backward, round_trip, residence }: &Ways) -> [(&'static str, &Delays); 4] {
    [
        ("forward", forward),
        ("backward", backward),
        ("round trip", round_trip),
        ("in the reflector", residence),
    ]
}

/// Routers on the way to the reflector, if it says with which TTL packets arrived and answers are of this session.
fn hops(measured: &Measured) -> Option<u8> {
    measured.figures.ttl.map(|ttl| SENDER_TTL - ttl)
}

/// The report for people.
pub fn text(measured: &Measured) -> String {
    let Measured { exchange, figures, host, from, to, session, bytes, per_second, .. } = measured;
    let mode = if measured.authenticated { "authenticated" } else { "unauthenticated" };
    let mut text = format!(
        "STAMP with {host}: {from} to {to}, session {session}, {mode}, {bytes} bytes, {per_second} packets/s\n\n"
    );
    let mut line = |name: &str, what: String| _ = writeln!(text, "{name:<18}{what}");
    if let Some(ways) = &figures.ways {
        line("ms", PERCENTILES.map(|(name, _)| format!("{name:>10}")).concat() + "    jitter");
        for (name, delays) in name_ways(ways) {
            let mut cells = String::new();
            for (_, share) in PERCENTILES {
                cells += &write_cell(delays.buckets.percentile(share).unwrap_or_default() as f64);
            }
            cells += &delays.jitter_ns.map_or_else(|| format!("{:>10}", "-"), write_cell);
            line(name, cells);
        }
    }
    if let Some(clock) = &figures.clock {
        line("clocks", clock_text(clock));
    }
    let lost = measured.count_lost();
    line("packets", format!("{} sent, {} answered, {lost} lost", exchange.sent, exchange.answers.len()));
    line("losses", losses_text(&figures.losses));
    let implausible = figures.implausible as u64;
    for (count, what) in [
        (exchange.duplicates, "duplicates"),
        (exchange.reordered, "reordered"),
        (exchange.strays, "no answers of this session, or of another key: not counted"),
        (implausible, "answers with times that contradict each other: no delay of theirs counts"),
    ] {
        if count > 0 {
            line("", format!("{count} {what}"));
        }
    }
    if let Some(hops) = hops(measured) {
        line("routers", format!("{hops} on the way there, by the TTL"));
    }
    if let Some(ttl) = exchange.answer_ttl {
        line("", format!("answers arrived with a TTL of {ttl}"));
    }
    if let Some(class) = measured.said.and_then(|said| said.class) {
        let ClassOfService { asked, arrived, ecn, refused } = class;
        let refused = if refused > 0 { ", which the reflector refuses" } else { "" };
        line("code points", format!("{asked} requested{refused}, {arrived} arrived there, ECN {ecn}"));
    }
    if let Some(times) = measured.said.and_then(|said| said.timestamps) {
        let TimestampInfo { source_in, method_in, source_out, method_out } = times;
        let arrival = format!("{method_in} (source {source_in})");
        let answer = format!("{method_out} (source {source_out})");
        line("its times", format!("arrival by method {arrival}, answer by method {answer}"));
    }
    if exchange.clock_was_set {
        line("warning", "this host's clock was set meanwhile: the delays are wrong".to_owned());
    }
    printable_lines(&text)
}

fn write_cell(ns: f64) -> String {
    format!("{:>10.3}", ms(ns))
}

fn clock_text(clock: &PeerClock) -> String {
    let PeerClock { offset_ns, bound_ns, estimated, contradicted } = *clock;
    let offset = ms(offset_ns as f64);
    let bound = ms(bound_ns as f64);
    let contradiction = match contradicted {
        true => "; the delays contradict the error bounds of the clocks: one of them is wrong",
        false => "",
    };
    let how = match estimated {
        true => {
            "estimated from the shortest delays; differences between the directions within this are unknown"
        }
        false => "known",
    };
    format!(
        "the reflector's is ahead by {offset:.3} ms; one-way delays are exact to {bound:.3} ms ({how}){contradiction}"
    )
}

fn losses_text(losses: &LossByDirection) -> String {
    match losses {
        LossByDirection::Known { forward, backward, after } => {
            let after =
                if *after > 0 { format!(", {after} at the end in one of both") } else { String::new() };
            format!("{forward} forward, {backward} backward{after}")
        }
        LossByDirection::Unknown { lost, reason } => format!("{lost}, the direction is not known: {reason}"),
    }
}

/// The report for programs. Times are milliseconds; what is not known is null.
pub fn json(measured: &Measured) -> String {
    let Measured { exchange, figures, .. } = measured;
    let losses = match &figures.losses {
        LossByDirection::Known { forward, backward, after } => {
            json!({ "forward": forward, "backward": backward, "at_the_end": after })
        }
        LossByDirection::Unknown { lost, reason } => json!({ "lost": lost, "direction_unknown": reason }),
    };
    let value = json!({
        "host": measured.host,
        "from": measured.from,
        "to": measured.to,
        "protocol": "stamp",
        "session": measured.session,
        "authenticated": measured.authenticated,
        "bytes": measured.bytes,
        "packets_per_second": measured.per_second,
        "sent": exchange.sent,
        "answered": exchange.answers.len(),
        "duplicates": exchange.duplicates,
        "reordered": exchange.reordered,
        "strays": exchange.strays,
        "implausible": figures.implausible,
        "losses": losses,
        "delay_ms": figures.ways.as_ref().map(|ways| {
            Map::from_iter(name_ways(ways).map(|(name, way)| (name.replace(' ', "_"), describe_delays(way))))
        }),
        "clock": figures.clock.map(|clock| json!({
            "offset_ms": ms(clock.offset_ns as f64),
            "bound_ms": ms(clock.bound_ns as f64),
            "estimated": clock.estimated,
            "contradicted": clock.contradicted,
        })),
        "clock_was_set": exchange.clock_was_set,
        "latest_ms": ms(exchange.late_ns as f64),
        "routers_forward": hops(measured),
        "answer_ttl": exchange.answer_ttl,
        "class_of_service": measured.said.and_then(|said| said.class).map(|class| json!({
            "asked": class.asked, "arrived": class.arrived, "ecn": class.ecn, "refused": class.refused,
        })),
        "timestamp_information": measured.said.and_then(|said| said.timestamps).map(|times| json!({
            "source_in": times.source_in, "method_in": times.method_in,
            "source_out": times.source_out, "method_out": times.method_out,
        })),
    });
    format!("{value:#}\n")
}

fn describe_delays(delays: &Delays) -> Value {
    let mut figures = json!({ "mean": ms(delays.mean_ns), "jitter": delays.jitter_ns.map(ms) });
    for (name, share) in PERCENTILES {
        figures[name] = json!(delays.buckets.percentile(share).map(|ns| ms(ns as f64)));
    }
    figures
}
