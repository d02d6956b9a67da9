//! Figures of the radio channel that a trial's hosts share.

use stacklab_model::wifi::ChannelUse;
use stacklab_model::{Metric, Probe, Role, TrialSpec, Value};
use stacklab_trial::Figures;

/// The nodes of the channel, by their places. Other stations follow.
const SENDER: usize = 0;
const ACCESS_POINT: usize = 1;
const RECEIVER: usize = 2;

/// Adds the channel's figures to those of a stream: of the windows in which its receiver received. So each arm of an
/// interleaved trial has those of the arm's slices.
pub(super) fn counted(mut made: Figures, spec: &TrialSpec) -> Figures {
    if spec.probe.probe != Probe::Stream {
        return made;
    }
    let received = made.host_reports.iter().find(|report| report.role == Role::Receiver);
    let used = received.and_then(|report| report.channel.clone());
    for metric in Metric::ALL.iter().copied().filter(|metric| metric.is_of_channel()) {
        let value = match &used {
            Some(used) => value(metric, used),
            None => Value::Missing("no message arrived".to_owned()),
        };
        made.values.insert(metric, value);
    }
    made
}

fn value(metric: Metric, used: &ChannelUse) -> Value {
    let drops = |node| (used.drop_share(node), "it had no frame to send");
    let (figure, without) = match metric {
        Metric::Airtime => (used.airtime_share(), "the window was empty"),
        Metric::GroupAirtime => (used.group_share(), "the window was empty"),
        Metric::FrameRetries => (used.retry_share(), "no frame was sent"),
        Metric::Collisions => (used.collision_share(), "no frame was sent"),
        Metric::QueueDropsSender => drops(SENDER),
        Metric::QueueDropsAccessPoint => drops(ACCESS_POINT),
        Metric::QueueDropsReceiver => drops(RECEIVER),
        _ => (used.mean_aggregate(), "no frame was sent"),
    };
    figure.map_or_else(|| Value::Missing(without.to_owned()), Value::Measured)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::fixtures::{received, stream_of};
    use stacklab_model::HostReport;
    use stacklab_model::wifi::{Airtime, NodeAirtime};

    #[test]
    fn a_streams_channel_is_its_receivers() {
        let nodes =
            [(10, 80, 20), (10, 60, 0), (0, 0, 0)].map(|(transmissions, frames_sent, queue_drops)| {
                NodeAirtime {
                    transmissions,
                    frames_sent,
                    frames_received: frames_sent,
                    queue_drops,
                    ..NodeAirtime::default()
                }
            });
        let used = ChannelUse {
            airtime: Airtime { data_ns: 90, idle_ns: 10, ..Airtime::default() },
            nodes: nodes.to_vec(),
            intervals: Vec::new(),
        };
        let receiver = HostReport { channel: Some(used), ..received(0, 0.0) };
        let sender = HostReport { role: Role::Sender, channel: None, ..received(0, 0.0) };
        let (spec, made) = stream_of(vec![sender, receiver]);
        let made = counted(made, &spec);
        for (metric, figure) in [
            (Metric::Airtime, 0.9),
            (Metric::AggregateSize, 7.0),
            (Metric::Collisions, 0.0),
            (Metric::QueueDropsSender, 0.2),
            (Metric::QueueDropsAccessPoint, 0.0),
        ] {
            assert_eq!(made.values[&metric], Value::Measured(figure), "{metric}");
        }
        assert!(matches!(&made.values[&Metric::QueueDropsReceiver], Value::Missing(_)));
        let (spec, silent) = stream_of(vec![received(0, 0.0)]);
        assert!(matches!(&counted(silent, &spec).values[&Metric::Airtime], Value::Missing(_)));
    }
}
