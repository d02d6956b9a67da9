//! The difference that header bytes or airtime alone explain, and the remainder caused by the stacks.

use stacklab_model::wifi::{AirtimeCost, WifiConfig};
use stacklab_model::{Cell, Effect, Explained, LimitedBy, LinkConfig, Metric, Question, Topology, WireCost};

/// The least share of what the headers allow that both arms must reach for the link to count as full. Below it
/// something else is the bottleneck (a CPU, a buffer, a window), and header bytes explain nothing.
const FULL_LINK: f64 = 0.9;
/// The same of airtime. Collisions, and what an access point's queue drops, take up to a seventh.
const FULL_CHANNEL: f64 = 0.8;

#[derive(Debug, Clone, Copy)]
pub(crate) enum RateLimit<'a> {
    /// The link's rate, by the header model ([`WireCost`]).
    Link(&'a Topology, &'a LinkConfig),
    /// The channel, by the airtime of messages ([`AirtimeCost`]).
    Channel(&'a WifiConfig),
}

impl<'a> RateLimit<'a> {
    pub(crate) fn of(topology: &'a Topology, link_config: &'a LinkConfig) -> Self {
        match topology {
            Topology::Wifi(network) => RateLimit::Channel(network),
            _ => RateLimit::Link(topology, link_config),
        }
    }

    /// The most that the testbed carries of a cell, in the unit of a throughput or message rate, with or without TCP's
    /// acknowledgements on air, and the reasoning; or why that is not known.
    fn most(self, cell: &Cell, metric: Metric, acknowledged: bool) -> Result<(f64, String), String> {
        let is_rate = metric == Metric::MessageRate;
        match self {
            RateLimit::Link(topology, link_config) => {
                let link_config = &topology.joint_link(link_config, cell);
                let rate = link_config.rate.ok_or_else(|| {
                    let what = metric.name().replace('_', " ");
                    format!("no rate limit on the link: header sizes cannot explain the difference in {what}")
                })?;
                let cost = WireCost::of(cell, link_config)?;
                Ok((if is_rate { cost.messages_per_second(rate) } else { cost.goodput(rate) }, cost.because))
            }
            RateLimit::Channel(network) => {
                let cost = AirtimeCost::of(cell, &network.of(cell))?;
                let cost = if acknowledged { cost } else { cost.at_least() };
                Ok((if is_rate { cost.messages_per_second() } else { cost.goodput() }, cost.because))
            }
        }
    }

    /// Explains a throughput or message rate; `None` for other metrics.
    ///
    /// `means` are the measured means of baseline and candidate, in the metric's unit. On a full link or channel the
    /// ratio is the model's, and the residual is the measured ratio over it. Otherwise the model explains nothing, and
    /// `because` says why.
    pub(crate) fn explain(
        self,
        question: &Question,
        effect: Option<&Effect>,
        means: [Option<f64>; 2],
    ) -> Option<Explained> {
        if !has_rate_limit(question.metric) {
            return None;
        }
        let by = match self {
            RateLimit::Link(..) => LimitedBy::Headers,
            RateLimit::Channel(_) => LimitedBy::Airtime,
        };
        Some(match self.ratio(question, means) {
            Ok((ratio, because)) => {
                let residual = effect.map(|effect| effect.estimate / ratio);
                Explained { by, ratio: Some(ratio), residual, because }
            }
            Err(because) => Explained { by, ratio: None, residual: None, because },
        })
    }

    fn ratio(self, question: &Question, means: [Option<f64>; 2]) -> Result<(f64, String), String> {
        let (baseline, of_baseline) = self.most(&question.baseline, question.metric, true)?;
        let (candidate, of_candidate) = self.most(&question.candidate, question.metric, true)?;
        let (full, what, limit) = match self {
            RateLimit::Link(..) => (FULL_LINK, "link", "of its goodput"),
            RateLimit::Channel(_) => (FULL_CHANNEL, "channel", "of the airtime"),
        };
        for (mean, most) in means.into_iter().zip([baseline, candidate]) {
            let fills = mean.is_none_or(|mean| mean >= full * most);
            if !fills {
                return Err(format!(
                    "the {what} was not full (an arm below {:.0} % {limit} limit): another bottleneck set the pace",
                    100.0 * full
                ));
            }
        }
        Ok((candidate / baseline, format!("{of_candidate}, against {of_baseline}")))
    }
}

fn has_rate_limit(metric: Metric) -> bool {
    matches!(metric, Metric::Throughput | Metric::MessageRate)
}

/// The most that a testbed carries of a cell by the model of headers, or of airtime on Wi-Fi (TCP without
/// acknowledgements), in the metric's unit. `None` for metrics that it does not limit, on a link without a rate, or for
/// messages that it has not.
pub fn limit(cell: &Cell, metric: Metric, topology: &Topology, link_config: &LinkConfig) -> Option<f64> {
    if !has_rate_limit(metric) {
        return None;
    }
    Some(RateLimit::of(topology, link_config).most(cell, metric, false).ok()?.0)
}

#[cfg(test)]
mod tests;
