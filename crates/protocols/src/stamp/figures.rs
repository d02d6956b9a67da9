//! Makes a run from a session with a reflector, and says what makes it invalid. The reflector's report is its word, as
//! far as its answers have one.

use crate::stamp::LossByDirection;
use crate::stamp::report::Measured;
use stacklab_model::{
    CpuScope, Delays, Drops, Endpoint, HostReport, Io, Metric, Received, Role, RunRecord, RunStatus, Sent,
    Trial, TrialSpec, Value,
};
use stacklab_trial::Path;
use stacklab_trial::results::{of_answers, values};

/// What the interface of the reflector's report is called: nobody knows it here.
const THEIR_INTERFACE: &str = "stamp";
/// The share of packets whose answers may have times that contradict each other.
const MAX_IMPLAUSIBLE: f64 = 0.01;

impl Measured {
    /// Why the session is not valid; empty if it is.
    pub fn contradictions(&self) -> Vec<String> {
        let Measured { exchange, figures, .. } = self;
        let mut reasons = Vec::new();
        if exchange.clock_was_set {
            reasons.push("this host's clock was set meanwhile: the delays are wrong".to_owned());
        }
        let implausible = figures.implausible;
        if implausible as f64 > MAX_IMPLAUSIBLE * exchange.sent as f64 {
            let sent = exchange.sent;
            reasons.push(format!(
                "{implausible} answers to {sent} packets have times that contradict each other"
            ));
        }
        match figures.clock {
            None => reasons.push("no answer has times that go together".to_owned()),
            Some(clock) if clock.contradicted => reasons.push(
                "the delays contradict the error bounds of the clocks: one of them is wrong".to_owned(),
            ),
            Some(_) => {}
        }
        reasons
    }

    /// The run of a trial that was this session.
    pub fn to_run(&self, trial: &Trial, mut spec: TrialSpec, path: &Path) -> RunRecord {
        spec.cpu_scope = CpuScope::Host;
        let sender = self.report_sender();
        let reflector = self.report_reflector(&sender);
        let mut made = values(&spec, path, &sender, &reflector);
        for (metric, value) in &mut made {
            match metric {
                Metric::EchoLoss | Metric::PacingErrorOpen | Metric::PacingErrorOpenP99 => {}
                Metric::PathRoundTrip => *value = self.find_path_round_trip(),
                _ => *value = Value::Missing("a STAMP reflector does not report it".to_owned()),
            }
        }
        RunRecord {
            trial: trial.clone(),
            spec,
            started_unix_ns: self.exchange.started_unix_ns,
            wall_ns: self.exchange.wall_ns,
            status: RunStatus::of(self.contradictions()),
            values: made.into(),
            drops: Drops::default(),
            host_reports: vec![sender, reflector],
            warnings: Vec::new(),
        }
    }

    /// A packet without an answer counts as one whose round trip is infinite, as in an echo with an agent.
    fn find_path_round_trip(&self) -> Value {
        of_answers(&self.round_trips(), self.count_lost(), 0.5)
    }

    fn round_trips(&self) -> Option<Delays> {
        self.figures.ways.as_ref().map(|ways| ways.round_trip.clone())
    }

    fn count_answers(&self) -> u64 {
        self.exchange.answers.len() as u64
    }

    pub(super) fn count_lost(&self) -> u64 {
        self.exchange.sent.saturating_sub(self.count_answers())
    }

    fn report_sender(&self) -> HostReport {
        let Measured { exchange, figures, bytes, .. } = self;
        let each = *bytes as u64;
        let arrivals = exchange.answers.iter().map(|(_, arrived_unix_ns)| *arrived_unix_ns);
        // Either each answer of a report has its delay, or none.
        let has_all = figures.implausible == 0;
        HostReport {
            io: Some(Io::Send),
            sent: Sent {
                measured: exchange.sent,
                bytes: exchange.sent * each,
                refused: exchange.refused,
                first_ns: exchange.first_sent_unix_ns,
                last_ns: exchange.last_sent_unix_ns,
                max_late_ns: Some(exchange.late_ns),
                ..Sent::default()
            },
            received: Received {
                measured: self.count_answers(),
                bytes: self.count_answers() * each,
                duplicates: exchange.duplicates,
                reordered: exchange.reordered,
                strays: exchange.strays,
                first_ns: arrivals.clone().min().unwrap_or(0),
                last_ns: arrivals.max().unwrap_or(0),
                ..Received::default()
            },
            delays: self.round_trips().filter(|_| has_all),
            pacing_error: exchange.pacing_error.clone(),
            counters: exchange.counters.clone(),
            ..HostReport::new(Role::Sender, exchange.endpoint.clone())
        }
    }

    /// What the reflector answered, by its numbers; without them, what came back here. Times are this host's.
    fn report_reflector(&self, sender: &HostReport) -> HostReport {
        let backward = match self.figures.losses {
            LossByDirection::Known { backward, .. } => backward,
            LossByDirection::Unknown { .. } => 0,
        };
        let measured = self.count_answers() + backward;
        let bytes = measured * self.bytes as u64;
        let Sent { first_ns, last_ns, .. } = sender.sent;
        // Of the path, what this host knows of it.
        let endpoint = Endpoint {
            local: sender.endpoint.peer,
            peer: sender.endpoint.local,
            interface: THEIR_INTERFACE.to_owned(),
            offloads: Default::default(),
            options: Default::default(),
            ..sender.endpoint.clone()
        };
        HostReport {
            sent: Sent { measured, bytes, first_ns, last_ns, ..Sent::default() },
            received: Received { measured, bytes, first_ns, last_ns, ..Received::default() },
            ..HostReport::new(Role::Receiver, endpoint)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamp::SessionFigures;
    use stacklab_model::{
        Buckets, Cell, Counters, Family, Length, Pacing, Probe, ProbeSpec, SizeOf, Transport,
    };
    use stacklab_traffic::peer::{ExchangeResult, PeerAnswer};
    use stacklab_trial::validate::finished_run;
    use std::ops::Range;

    const SECOND: u64 = 1_000_000_000;
    const START: u64 = 1_700_000_000 * SECOND;

    /// Answers to packets that are 10 ms apart: after 3 ms there, 1 ms in the reflector and 5 ms back.
    fn answers(answered: Range<u32>, change: fn(&mut PeerAnswer)) -> Vec<(PeerAnswer, u64)> {
        let mut answers = Vec::new();
        for (peer_sequence, sequence) in (0..).zip(answered) {
            let sent_unix_ns = START + u64::from(sequence) * 10_000_000;
            let mut answer = PeerAnswer {
                sequence,
                peer_sequence,
                sent_unix_ns,
                received_unix_ns: sent_unix_ns + 3_000_000,
                answered_unix_ns: sent_unix_ns + 4_000_000,
                ttl: 255,
                clock_error_ns: None,
            };
            change(&mut answer);
            answers.push((answer, sent_unix_ns + 9_000_000));
        }
        answers
    }

    fn endpoint() -> Endpoint {
        Endpoint {
            family: Family::Ipv4,
            transport: Transport::Udp,
            local: "192.0.2.1:5000".parse().unwrap(),
            peer: "192.0.2.2:862".parse().unwrap(),
            interface: "eth0".to_owned(),
            interface_mtu: 1500,
            path_mtu: Some(1500),
            offloads: Default::default(),
            congestion_control: None,
            options: Default::default(),
        }
    }

    /// A session of 100 packets, of which these are answered. `change` changes an answer.
    fn session(answered: Range<u32>, change: fn(&mut PeerAnswer)) -> Measured {
        let late = Buckets(vec![(2_000, 100)]);
        let late = Delays { buckets: late, mean_ns: 2e3, jitter_ns: None, jitter_rfc3550_ns: None };
        let exchange = ExchangeResult {
            started_unix_ns: START,
            wall_ns: 2 * SECOND,
            endpoint: endpoint(),
            counters: Counters::default(),
            sent: 100,
            refused: 0,
            first_sent_unix_ns: START,
            last_sent_unix_ns: START + SECOND,
            pacing_error: Some(late),
            answers: answers(answered, change),
            duplicates: 0,
            reordered: 0,
            strays: 0,
            closing: None,
            answer_ttl: None,
            late_ns: 2_000,
            clock_was_set: false,
        };
        Measured {
            host: "router".to_owned(),
            from: "192.0.2.1".to_owned(),
            to: "192.0.2.2:862".to_owned(),
            session: 7,
            authenticated: false,
            bytes: 44,
            per_second: 100.0,
            said: None,
            figures: SessionFigures::of(&exchange, None, None),
            exchange,
        }
    }

    fn run(measured: &Measured) -> RunRecord {
        let cell = Cell::new(Family::Ipv4, Transport::Udp, SizeOf::Write, 44);
        let probe = ProbeSpec {
            probe: Probe::EchoOpenLoop,
            pacing: Pacing::Schedule(100.0),
            length: Length::Time(SECOND),
            warmup_ns: 0,
            interval_ns: SECOND,
            metrics: vec![Metric::PathRoundTrip, Metric::EchoLoss],
        };
        let trial = Trial { block: 0, position: 0, cell, probe: probe.probe };
        let [from, to] = ["192.0.2.1", "192.0.2.2"].map(|address| address.parse().unwrap());
        let spec = TrialSpec::new(0, &trial.cell, probe);
        measured.to_run(&trial, spec, &Path::without_plan(from, to, 1500))
    }

    #[test]
    fn round_trip_is_without_the_time_in_the_reflector() {
        let run = run(&session(0..100, |_| ()));
        let Value::Measured(ms) = run.values[&Metric::PathRoundTrip] else { panic!("{run:?}") };
        assert!((ms - 8.0).abs() < 0.05, "{ms}");
        assert_eq!(run.values[&Metric::EchoLoss], Value::Measured(0.0));
        assert_eq!(run.values[&Metric::PacingErrorOpen], Value::Measured(0.002));
        let Value::Missing(reason) = &run.values[&Metric::RttOpen] else { panic!("{run:?}") };
        assert!(reason.contains("STAMP"), "{reason}");
        assert_eq!(finished_run(&run), [""; 0]);
    }

    #[test]
    fn packets_without_answer_are_losses() {
        let lossy = run(&session(0..80, |_| ()));
        assert_eq!(lossy.values[&Metric::EchoLoss], Value::Measured(0.2));
        assert!(lossy.is_valid() && finished_run(&lossy).is_empty(), "{lossy:?}");
        // The median is one of a packet that was lost.
        let most_lost = run(&session(0..40, |_| ()));
        assert!(
            matches!(&most_lost.values[&Metric::PathRoundTrip], Value::Missing(why) if why.contains("infinite"))
        );
    }

    #[test]
    fn few_implausible_answers_are_allowed() {
        let one = run(&session(0..100, |answer| {
            if answer.sequence == 50 {
                answer.answered_unix_ns = 0;
            }
        }));
        assert!(one.is_valid() && finished_run(&one).is_empty(), "{one:?}");
        let two = session(0..100, |answer| {
            if answer.sequence >= 98 {
                answer.answered_unix_ns = 0;
            }
        });
        assert_eq!(two.contradictions(), ["2 answers to 100 packets have times that contradict each other"]);
        assert_eq!(session(0..0, |_| ()).contradictions(), ["no answer has times that go together"]);
    }

    #[test]
    fn clock_that_was_set_makes_a_run_invalid() {
        let mut measured = session(0..100, |_| ());
        measured.exchange.clock_was_set = true;
        assert!(!run(&measured).is_valid());
        let mut contradicted = session(0..100, |_| ());
        contradicted.figures = SessionFigures::of(&contradicted.exchange, Some(0), None);
        assert!(run(&contradicted).is_valid());
        for (answer, _) in &mut contradicted.exchange.answers {
            (answer.received_unix_ns, answer.answered_unix_ns) =
                (answer.received_unix_ns + SECOND, answer.answered_unix_ns + SECOND);
        }
        contradicted.figures = SessionFigures::of(&contradicted.exchange, Some(0), None);
        assert!(!run(&contradicted).is_valid());
    }
}
