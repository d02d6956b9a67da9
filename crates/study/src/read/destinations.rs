//! Several destinations of a stream's datagrams, and what a study may therefore not ask for.

use crate::diagnostics::{Problem, Problems};
use crate::read::factors::{Factors, has_guest};
use crate::read::{At, Node};
use stacklab_model::{
    Direction, Factor, FlowOffload, Io, Mechanism, ProbeSpec, RouterQueue, SocketKind, Transport,
};

pub(super) fn check(testbed: Node, all: &[Factors], probes: &[ProbeSpec], problems: &mut Problems) {
    for factors in all {
        let Some(level) = factors.find_several(Factor::Destinations) else { continue };
        let several = Several { level: &level, factors };
        several.check_path(testbed, problems);
        several.check_routers(problems);
        several.check_neighbours(problems);
        several.check_streams(problems);
        several.check_sockets(problems);
        several.check_probes(probes, problems);
        if !problems.is_empty() {
            return;
        }
    }
}

struct Several<'a> {
    level: &'a At<u32>,
    factors: &'a Factors,
}

impl Several<'_> {
    /// Adds a level that several destinations cannot have, with the reason.
    fn refuse<T>(&self, other: &At<T>, reason: &str, label: &str, problems: &mut Problems) {
        let problem = other.problem(format!("`destinations` {reason}"), label);
        let problem = problem.with_related_place(&self.level.place, "together with this");
        problems.add(problem.help("leave this level out, or factors.destinations"));
    }

    /// Adds the first level of a factor that is another one than the usual.
    fn refuse_other(&self, factor: Factor, usual: &str, reason: &str, label: &str, problems: &mut Problems) {
        let mut levels = self.factors.setting_levels(factor).iter();
        if let Some(other) = levels.find(|level| level.value != usual) {
            self.refuse(other, reason, label, problems);
        }
    }

    fn check_path(&self, testbed: Node, problems: &mut Problems) {
        if let Some(place) = testbed.get("sender_link").get("mtu").place() {
            let title = "`destinations` have the path MTU of testbed.mtu: that of each is not discovered";
            let problem = Problem::at(place, title, "another MTU")
                .with_related_place(&self.level.place, "together with this");
            problems.add(problem.help("leave testbed.sender_link.mtu out, or factors.destinations"));
        }
        let native = Mechanism::Native.name();
        let reason = "are reached by routes alone, without a transition mechanism";
        self.refuse_other(Factor::Mechanism, native, reason, "has two ends", problems);
        let reason = "are behind one router of the sender";
        self.refuse_other(Factor::Clients, "1", reason, "several routers", problems);
        for factor in [Factor::Os, Factor::RouterOs] {
            if let Some(guest) = self.factors.setting_levels(factor).iter().find(|level| has_guest(level)) {
                let reason = "need namespaces; --in-vm builds all hosts in a guest";
                self.refuse(guest, reason, "another system", problems);
            }
        }
    }

    fn check_routers(&self, problems: &mut Problems) {
        let offload = self.factors.setting_levels(Factor::FlowOffload);
        if let Some(on) = offload.iter().find(|level| level.value == FlowOffload::On.name()) {
            let reason = "are looked up for each packet, which a flowtable is there to avoid";
            self.refuse(on, reason, "passes no route", problems);
        }
        let queues = self.factors.setting_levels(Factor::RouterQueue);
        if let Some(rps) = queues.iter().find(|level| level.value == RouterQueue::Rps.name()) {
            let reason = "are flows, which steering spreads over processors";
            self.refuse(rps, reason, "may reorder them", problems);
        }
    }

    /// Each destination must be a neighbour, or none of them.
    fn check_neighbours(&self, problems: &mut Problems) {
        let Some(neighbours) = self.factors.setting(Factor::Neighbours) else { return };
        let mut some = neighbours.numbers().filter(|level| level.value > 0);
        if let Some(few) = some.find(|level| level.value < self.level.value) {
            let reason = "are each a neighbour of the receiver's router, where it has further ones";
            self.refuse(&few, reason, "fewer than destinations", problems);
        }
    }

    fn check_streams(&self, problems: &mut Problems) {
        if let Some(tcp) = self.factors.transport.iter().find(|level| level.value == Transport::Tcp) {
            let reason = "are those of datagrams, and a connection has one";
            self.refuse(tcp, reason, "has one destination", problems);
        }
        let forward = Direction::Forward.name();
        let reason = "are behind the receiver, from where nothing comes back";
        self.refuse_other(Factor::Direction, forward, reason, "begins at the receiver", problems);
        let reason = "are those of one flow";
        self.refuse_other(Factor::Flows, "1", reason, "several flows", problems);
    }

    fn check_sockets(&self, problems: &mut Problems) {
        let paths = self.factors.setting_levels(Factor::Io);
        if let Some(gso) = paths.iter().find(|level| level.value == Io::Gso.name()) {
            self.refuse(gso, "are one for each datagram", "a batch has one destination", problems);
        }
        let native = SocketKind::Native.name();
        let reason = "are addresses of the cell's family";
        self.refuse_other(Factor::Socket, native, reason, "has addresses of the other", problems);
        if let Some(label) = self.factors.setting_levels(Factor::FlowLabel).first() {
            self.refuse(label, "have no flow label", "is leased for one destination", problems);
        }
    }

    /// Other probes than streams measure the cells with one destination, if there are such.
    fn check_probes(&self, probes: &[ProbeSpec], problems: &mut Problems) {
        let Some(setting) = self.factors.setting(Factor::Destinations) else { return };
        if setting.numbers().any(|level| level.value == 1) {
            return;
        }
        for spec in probes.iter().filter(|spec| !spec.probe.spreads()) {
            let title = format!("probe `{}` has one destination: it needs an answer", spec.probe);
            let problem = self.level.problem(title, "several destinations");
            problems.add(problem.help("leave the probe out, or add the level 1, which it then measures"));
        }
    }
}
