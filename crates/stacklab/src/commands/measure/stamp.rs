//! `stacklab measure echo --peer stamp`: delays and losses both ways to a STAMP or TWAMP-Light reflector.

use crate::commands::measure::options::{CommonOptions, StampOptions};
use crate::commands::measure::refuse;
use crate::failure::Failure;
use crate::output::print_text;
use stacklab_agent::client::addresses;
use stacklab_campaign::single::{MeasureRequest, Pace};
use stacklab_model::{Length, Pacing, Transport};
use stacklab_protocols::stamp::report::{Measured, json, text};
use stacklab_protocols::stamp::{
    self, ClassOfService, Codec, ErrorEstimate, Extensions, SENDER_TTL, SessionFigures, StampSession,
    TimestampInfo,
};
use stacklab_traffic::host::zone::route_to;
use stacklab_traffic::peer::{ExchangeSpec, PacketFormat, PeerError, clock_error_ns, exchange};
use stacklab_traffic::protocol::AgentError;
use std::sync::atomic::{AtomicBool, Ordering};

/// Most packets of a session: the delays of all are in memory until the end.
const MAX_PACKETS: u64 = 1_000_000;
/// Packets per second without --pps.
const PER_SECOND: f64 = 100.0;

pub(super) fn measure(
    common: &CommonOptions,
    request: &MeasureRequest,
    peer: Option<&StampOptions>,
    interrupted: &'static AtomicBool,
) -> Result<(), Failure> {
    let peer = fits(common, request, peer)?;
    let per_second = packets_per_second(request)?;
    let key = common.key_file.as_deref().map(stamp::key).transpose();
    let key = key.map_err(Failure::usage)?;
    let session = session(request, peer, Codec::new(key.clone()))?;
    let there = addresses(&common.target())?.swap_remove(0);
    let route =
        route_to(&there.address, common.target().source_to(&there.address)).map_err(Failure::unreachable)?;
    let spec = ExchangeSpec {
        from: route.address.clone(),
        to: there.socket,
        per_second,
        length: request.length,
        tuning: request.tuning.clone(),
        ttl: SENDER_TTL,
    };
    let exchange = exchange(&spec, &session, interrupted).map_err(explain)?;
    let measured = Measured {
        host: common.host.clone(),
        from: route.address.to_string(),
        to: there.to_string(),
        session: session.number(),
        authenticated: key.is_some(),
        bytes: session.bytes(),
        per_second,
        said: session.last_extensions(),
        figures: SessionFigures::of(&exchange, peer.clock_error, clock_error_ns()),
        exchange,
    };
    print_text(&if common.json { json(&measured) } else { text(&measured) })?;
    if interrupted.load(Ordering::Relaxed) {
        return Err(AgentError::Interrupted.into());
    }
    if measured.exchange.answers.is_empty() {
        return Err(Failure::unreachable(format!(
            "{there} did not answer: check whether a STAMP reflector runs there, whether UDP passes the firewalls, and \
             whether it requires another key (--key-file)"
        )));
    }
    let contradicted = measured.figures.clock.is_none_or(|clock| clock.contradicted);
    if contradicted || measured.exchange.clock_was_set { Err(Failure::invalid_run()) } else { Ok(()) }
}

/// The rate of a session; an error if it has too many packets.
fn packets_per_second(request: &MeasureRequest) -> Result<f64, Failure> {
    let per_second = match request.pace {
        Pace::As(Pacing::Schedule(per_second)) => per_second,
        _ => PER_SECOND,
    };
    let packets = match request.length {
        Length::Packets(packets) => packets,
        Length::Time(ns) => (per_second * ns as f64 / 1e9) as u64,
    };
    if packets > MAX_PACKETS {
        return Err(Failure::usage(format!(
            "a session has at most {MAX_PACKETS} packets: send fewer with -n, -t or --pps"
        )));
    }
    Ok(per_second)
}

fn explain(error: PeerError) -> Failure {
    match error {
        PeerError::Interrupted => AgentError::Interrupted.into(),
        PeerError::Refused(_) => {
            Failure::unreachable(format!("{error}: start a STAMP reflector there, or name its port with -p"))
        }
        PeerError::Engine(error) => Failure::unreachable(error.to_string()),
    }
}

fn fits<'a>(
    common: &CommonOptions,
    request: &MeasureRequest,
    peer: Option<&'a StampOptions>,
) -> Result<&'a StampOptions, Failure> {
    let refused = [
        (peer.is_none(), "another measurement than echo"),
        (request.transport == Transport::Tcp, "--tcp"),
        (request.at_interface, "--at-interface"),
        (request.poll_ns > 0, "--poll"),
        (request.warmup_ns > 0, "-O"),
        (common.against.is_some(), "--against"),
        (common.reverse, "-R"),
        (common.tls.is_some(), "--tls"),
    ];
    refuse(&refused, " cannot be combined with --peer stamp: leave one out")?;
    Ok(peer.expect("an echo has these options"))
}

fn session(request: &MeasureRequest, peer: &StampOptions, codec: Codec) -> Result<StampSession, Failure> {
    let class = request.tuning.dscp.map(|asked| ClassOfService { asked, ..ClassOfService::default() });
    let timestamps = peer.stamp_times.then(TimestampInfo::default);
    let extensions = Extensions { class, timestamps, padding: None };
    let octets = request.size.map(|size| size as usize);
    let error = ErrorEstimate::new(peer.stamp_format, clock_error_ns());
    let session = StampSession::new(codec, extensions, octets, peer.stamp_session, error);
    session.map_err(|reason| Failure::usage(format!("-l {reason}")))
}
