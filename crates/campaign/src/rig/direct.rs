//! Two hosts on a virtual link.

use crate::CampaignError;
use crate::rig::affinity::{CpuAffinity, Steers};
use crate::rig::host_pair::{HostPair, Kernels, names, planned_path};
use crate::rig::{BucketLink, CellSet, Rig, RigKind, RigNetwork};
use crate::trial::Evidence;
use stacklab_guests::prepare;
use stacklab_model::{Cell, LinkConfig, Services, Systems};
use stacklab_store::HostRow;
use stacklab_study::Study;
use stacklab_testbed::error::Attempt;
use stacklab_testbed::services::Serving;
use stacklab_testbed::{AGENT, AtHost, Host, Node, Testbed, TestbedError, Ticks};
use stacklab_traffic::protocol::AgentError;
use stacklab_trial::Path;
use std::sync::atomic::AtomicBool;

/// A built testbed: namespaces or guests, with or without services on the receiver.
struct Direct(Box<Testbed>);

/// Builds the testbed for a pair of systems with the receiver's services. Call it from the main thread: the hosts end
/// with the thread that made them.
pub(super) fn rig(
    study: &Study,
    systems: &Systems,
    services: &Services,
    interrupted: &'static AtomicBool,
) -> Result<Rig, CampaignError> {
    let mut testbed = Testbed::of(systems, &study.link_config, &crate::own_program()?, &AGENT, prepare)?;
    let [sender, receiver] = testbed.hosts_mut().each_mut().map(Host::meet);
    let streams = [sender?, receiver?];
    testbed.serve(services)?;
    let is = RigKind {
        cells: CellSet::OfHosts(systems.clone(), services.clone()),
        here: true,
        cubic: *systems == Systems::NAMESPACES,
        divides: testbed.has_own_processors(),
        // Both hosts', to fill a link of known rate; else a TCP sender's, and the sender's processor does the rest of
        // both hosts' work, and is the limit.
        steers: match study.link_config.rate {
            _ if !testbed.can_steer() => Steers::None,
            Some(_) => Steers::Both,
            None => Steers::Senders,
        },
        buckets: vec![BucketLink { link: study.link_config.clone(), has_mechanism: true, count: 1 }],
        ..RigKind::default()
    };
    let mut about = testbed.guests();
    if let Some(serving) = testbed.serving() {
        about[1] = Some(serving.describe());
    }
    let kinds = [0, 1].map(|host| match (systems.0[host].kind(), &about[host]) {
        (kind, Some(about)) => format!("{kind}: {about}"),
        (kind, None) => kind.to_owned(),
    });
    let ends = HostPair::connect(systems, names(systems, services), kinds, streams, interrupted)?;
    Ok(Rig::new(ends, is, testbed.describe(), Direct(Box::new(testbed))))
}

impl RigNetwork for Direct {
    fn path(&self, link_config: &LinkConfig, cell: &Cell) -> Path {
        let addresses = self.0.hosts().each_ref().map(|host| host.address(cell.family).into());
        planned_path(addresses, link_config, cell)
    }

    fn tool_hosts(&self) -> Option<[&Host; 2]> {
        self.0.guests().iter().all(Option::is_none).then(|| self.0.hosts().each_ref())
    }

    fn add_hosts(&mut self, rows: &mut Vec<HostRow>, _: &mut Kernels) -> Result<(), AgentError> {
        for (row, host) in rows.iter_mut().zip(self.0.hosts()) {
            row.facts.kept_settings.clone_from(&host.kept_settings);
        }
        Ok(())
    }

    fn guest_ticks(&self) -> [Option<Ticks>; 2] {
        self.0.hosts().each_ref().map(Host::guest_ticks)
    }

    fn configure(&mut self, cell: &Cell, affinity: CpuAffinity) -> Result<(), TestbedError> {
        self.0.set_link(cell.settings.mtu, cell.settings.queue_length)?;
        self.0.divide(affinity.divided)?;
        let steered = self.0.steer(affinity.steered).attempt("configure receive packet steering (RPS)");
        steered.at(Node::Receiver)
    }

    fn begin(&mut self, _: &mut HostPair, _: u64) -> Result<(), CampaignError> {
        if let Some(serving) = self.0.serving() {
            serving.begin();
        }
        Ok(())
    }

    fn end(&mut self, evidence: &mut [Evidence]) -> Result<(), CampaignError> {
        evidence[0].services = self.0.serving().map(Serving::end).transpose()?;
        Ok(())
    }
}
