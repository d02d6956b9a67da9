//! What an agent does for each request that is permitted.

use super::{Agent, MAX_RECEIVERS, RequestWork};
use crate::EngineError;
use crate::engine::arms;
use crate::engine::opening::{self, WaitingSender};
use crate::engine::peers::Peers;
use crate::engine::receiver::Receiver;
use crate::engine::sender::{self, Run};
use crate::engine::turns::Turn;
use crate::host::cpu::CpuWatch;
use crate::host::held_sockets::{self, SocketsToHold};
use crate::host::{self, facts};
use crate::protocol::Timetable;
use crate::protocol::message::{Answer, Request, SendArm, VERSIONS};
use crate::sys;
use stacklab_model::{HostReport, Length, ScopedAddr, TrialSpec};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

impl Agent {
    pub(super) fn perform(&mut self, id: u64, request: Request) -> Result<RequestWork, String> {
        match request {
            Request::Hello { oldest, newest } => agree_on_version(oldest, newest).map(RequestWork::Done),
            Request::Facts => Ok(RequestWork::Done(Answer::Facts(Box::new(facts::collect())))),
            Request::NoiseFloor => Ok(RequestWork::Done(Answer::NoiseFloor(Box::new(facts::floor())))),
            Request::Clock => Ok(RequestWork::Done(Answer::Clock { now_ns: sys::now_ns() })),
            Request::Count { interface } => {
                Ok(RequestWork::Done(Answer::Counted { counters: host::counters(&interface) }))
            }
            Request::WatchCpu => self.watch_cpu(),
            Request::CpuBetween { from_ns, to_ns } => {
                let time = self.cpu_watch.take().and_then(|watch| watch.between(from_ns, to_ns));
                Ok(RequestWork::Done(Answer::Cpu { time }))
            }
            Request::HoldSockets { spec } => Ok(hold_sockets(&spec)),
            Request::OpenPorts(asked) => self.open_ports(id, &asked),
            Request::SendToPorts(asked) => self.send_to_ports(asked),
            Request::TakeFromPorts(asked) => self.take_from_ports(asked),
            Request::AnswerFromPorts(asked) => self.answer_from_ports(asked),
            Request::ClosePorts { opened } => self.close_ports(opened),
            Request::Listen { .. } | Request::Wait { .. } | Request::Open { .. }
                if self.receivers.len() + self.waiting.len() >= MAX_RECEIVERS =>
            {
                Err(format!("refused to listen: at most {MAX_RECEIVERS} receivers"))
            }
            Request::Listen { spec, address } => {
                let peers = self.peers();
                let ports = &self.permission.data_ports;
                Ok(self.keep_receiver(id, Receiver::listen_to(*spec, address, peers, ports)?))
            }
            Request::Open { spec, address, to } => {
                let receiver = opening::receiver(*spec, &address, to, self.allowance.clone())?;
                Ok(self.keep_receiver(id, receiver))
            }
            Request::Wait { spec, address } => self.wait_for_receiver(id, *spec, &address),
            Request::Send(arm) => self.send(id, arm),
            Request::SendInTurns { arms, seed } => self.send_in_turns(arms, seed),
            Request::SendInSlots { arm, timetable } => self.send_in_slots(arm, timetable),
            Request::Stop { send } => Ok(RequestWork::Done(self.stop(send))),
            Request::Collect { listen } => self.collect(listen),
        }
    }

    fn watch_cpu(&mut self) -> Result<RequestWork, String> {
        let watch = CpuWatch::begin().map_err(|error| format!("could not start a thread: {error}"))?;
        self.cpu_watch = Some(watch);
        Ok(RequestWork::Done(Answer::Watching))
    }

    /// The peers that the permission names, if it has limits.
    fn peers(&self) -> Option<Peers> {
        self.permission.limits.as_ref().map(|limits| limits.peers.clone())
    }

    /// Keeps a receiver until it is collected.
    fn keep_receiver(&mut self, id: u64, receiver: Receiver) -> RequestWork {
        let address = receiver.address;
        self.receivers.insert(id, receiver);
        RequestWork::Listening(Answer::Listening { address })
    }

    fn wait_for_receiver(
        &mut self,
        id: u64,
        spec: TrialSpec,
        address: &ScopedAddr,
    ) -> Result<RequestWork, String> {
        let peers = self.peers();
        let waiting = WaitingSender::listen(spec, address, peers, &self.permission.data_ports)?;
        let address = waiting.address;
        self.waiting.insert(id, waiting);
        Ok(RequestWork::Listening(Answer::Listening { address }))
    }

    /// The sender that waited for its receiver, if the request names one.
    fn take_waiting(&mut self, id: Option<u64>) -> Result<Option<WaitingSender>, String> {
        let Some(id) = id else { return Ok(None) };
        let waiting = self.waiting.remove(&id).ok_or("unknown sender: no `wait` request came before")?;
        self.activity.end(id);
        Ok(Some(waiting))
    }

    fn send(&mut self, id: u64, arm: SendArm) -> Result<RequestWork, String> {
        let waiting = self.take_waiting(arm.waiting)?;
        let stop = Arc::new(AtomicBool::new(false));
        self.stops.retain(|_, stop| stop.strong_count() > 0);
        self.stops.insert(id, Arc::downgrade(&stop));
        let allowance = self.allowance.clone();
        Ok(report_later(move || {
            let allowance = allowance.as_deref();
            sender::run_arm(arm, Run { waiting, stop: Some(&stop), allowance, turn: None })
        }))
    }

    /// Ends a send early. One that has ended needs no more.
    fn stop(&self, send: u64) -> Answer {
        if let Some(stop) = self.stops.get(&send).and_then(Weak::upgrade) {
            stop.store(true, Ordering::Relaxed);
        }
        Answer::Stopping
    }

    fn send_in_turns(&mut self, arms: Vec<SendArm>, seed: u64) -> Result<RequestWork, String> {
        let mut with_flows = Vec::new();
        for arm in arms {
            let waiting = self.take_waiting(arm.waiting)?;
            with_flows.push((arm, waiting));
        }
        let allowance = self.allowance.clone();
        Ok(RequestWork::Lasting(Box::new(move || {
            arms::send_in_turns(with_flows, seed, allowance.as_deref()).map(Answer::ArmsDone)
        })))
    }

    fn send_in_slots(&mut self, arm: SendArm, timetable: Timetable) -> Result<RequestWork, String> {
        let waiting = self.take_waiting(arm.waiting)?;
        let turn = Turn::in_slots(timetable).map_err(|error| error.to_string())?;
        let allowance = self.allowance.clone();
        Ok(report_later(move || {
            let allowance = allowance.as_deref();
            sender::run_arm(arm, Run { waiting, turn: Some(turn), allowance, stop: None })
        }))
    }

    fn collect(&mut self, listen: u64) -> Result<RequestWork, String> {
        if self.waiting.remove(&listen).is_some() {
            self.activity.end(listen);
            return Err("ended a wait for a receiver".to_owned());
        }
        let receiver =
            self.receivers.remove(&listen).ok_or("unknown receiver: no `listen` request came before")?;
        self.activity.end(listen);
        Ok(report_later(move || receiver.collect()))
    }
}

/// The version of the protocol that both ends speak.
fn agree_on_version(oldest: u32, newest: u32) -> Result<Answer, String> {
    let version = newest.min(VERSIONS.1);
    if version < oldest.max(VERSIONS.0) {
        return Err(format!(
            "this agent speaks versions {} to {}, the coordinator {oldest} to {newest}: install the same stacklab on both",
            VERSIONS.0, VERSIONS.1
        ));
    }
    let program = env!("CARGO_PKG_VERSION").to_owned();
    Ok(Answer::Hello { version, program })
}

fn hold_sockets(spec: &TrialSpec) -> RequestWork {
    let asked = SocketsToHold {
        family: spec.family,
        transport: spec.transport,
        pairs: match spec.probe.length {
            Length::Packets(pairs) => pairs.try_into().unwrap_or(u32::MAX),
            Length::Time(_) => 0,
        },
        message_bytes: spec.message_bytes,
    };
    RequestWork::Lasting(Box::new(move || Ok(Answer::Held(held_sockets::hold(asked)?))))
}

/// Work that lasts as long as a trial, whose answer is a host's report.
fn report_later(work: impl FnOnce() -> Result<HostReport, EngineError> + Send + 'static) -> RequestWork {
    RequestWork::Lasting(Box::new(move || Ok(Answer::Done(Box::new(work()?)))))
}
