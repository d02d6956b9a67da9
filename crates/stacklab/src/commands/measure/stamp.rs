//! `stacklab measure echo --peer stamp`: delays and losses both ways to a STAMP or TWAMP-Light reflector. With
//! --against it is a comparison as any other.

use crate::commands::measure::options::{CommonOptions, MeasureOptions, StampOptions};
use crate::commands::measure::refuse;
use crate::commands::measure::routes::server_way;
use crate::commands::measure::study::MAX_TRIAL_NS;
use crate::failure::Failure;
use crate::output::print_text;
use stacklab_agent::client::{Target, addresses};
use stacklab_campaign::rig::{SessionSettings, SessionTraffic, StampReflector, check_answers};
use stacklab_campaign::single::{MeasureRequest, Pace};
use stacklab_model::{Family, Length, Pacing, Transport};
use stacklab_protocols::stamp::report::{json, text};
use stacklab_protocols::stamp::{self, ClassOfService, Extensions, TimestampInfo};
use stacklab_traffic::peer::PacketFormat;
use stacklab_traffic::protocol::AgentError;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// Most packets of a session: the delays of all are in memory until the end.
const MAX_PACKETS: u64 = 1_000_000;

/// The sessions that the options ask for. Refuses what a reflector cannot do.
pub(super) fn make_settings(
    options: &MeasureOptions,
    request: &MeasureRequest,
) -> Result<SessionSettings, Failure> {
    let common = options.common();
    let peer = check_options(common, request, options.stamp())?;
    check_packets(common, request)?;
    let key = common.key_file.as_deref().map(stamp::key).transpose().map_err(Failure::usage)?;
    let class = request.tuning.dscp.map(|asked| ClassOfService { asked, ..ClassOfService::default() });
    let timestamps = peer.stamp_times.then(TimestampInfo::default);
    let settings = SessionSettings {
        key,
        extensions: Extensions { class, timestamps, padding: None },
        packet_bytes: request.size.map(|size| size as usize),
        number: peer.stamp_session,
        time_format: peer.stamp_format,
        clock_error_ns: peer.clock_error,
    };
    let session = settings.session().map_err(|reason| Failure::usage(format!("-l {reason}")))?;
    Ok(SessionSettings { packet_bytes: Some(session.bytes()), ..settings })
}

fn check_options<'a>(
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
        (common.reverse, "-R"),
        (common.tls.is_some(), "--tls"),
    ];
    refuse(&refused, " cannot be combined with --peer stamp: leave one out")?;
    Ok(peer.expect("an echo has these options"))
}

fn rate(request: &MeasureRequest) -> f64 {
    let Pace::As(Pacing::Schedule(rate)) = request.pace else {
        unreachable!("packets to a reflector leave on a schedule")
    };
    rate
}

/// An error if a session has too many packets. With --against each trial is one.
fn check_packets(common: &CommonOptions, request: &MeasureRequest) -> Result<(), Failure> {
    let packets = match (common.against, request.length) {
        (None, Length::Packets(packets)) => packets,
        (None, Length::Time(ns)) => (rate(request) * ns as f64 / 1e9) as u64,
        (Some(_), _) => (rate(request) * MAX_TRIAL_NS as f64 / 1e9) as u64,
    };
    if packets > MAX_PACKETS {
        return Err(Failure::usage(format!(
            "a session has at most {MAX_PACKETS} packets: send fewer with -n, -t or --pps"
        )));
    }
    Ok(())
}

/// The reflector at the first of the host's addresses: whether one answers shows when it is measured.
pub(super) fn reach_reflector(
    target: &Target<'_>,
    settings: &SessionSettings,
    interrupted: &'static AtomicBool,
) -> Result<(StampReflector, Family), Failure> {
    let there = addresses(target)?.swap_remove(0);
    let family = Family::of(there.address.ip());
    let ways = BTreeMap::from([(family, server_way(target, &there)?)]);
    Ok((StampReflector::over(target.host, ways, settings.clone(), interrupted), family))
}

/// One session, to the first of the host's addresses.
pub(super) fn measure_session(
    common: &CommonOptions,
    request: &MeasureRequest,
    target: &Target<'_>,
    settings: &SessionSettings,
    interrupted: &'static AtomicBool,
) -> Result<(), Failure> {
    let (reflector, family) = reach_reflector(target, settings, interrupted)?;
    let traffic =
        SessionTraffic { rate: rate(request), length: request.length, tuning: request.tuning.clone() };
    let measured = reflector.run_session(family, &traffic)?;
    print_text(&if common.json { json(&measured) } else { text(&measured) })?;
    if interrupted.load(Ordering::Relaxed) {
        return Err(AgentError::Interrupted.into());
    }
    check_answers(&measured)?;
    if measured.contradictions().is_empty() { Ok(()) } else { Err(Failure::invalid_run()) }
}
