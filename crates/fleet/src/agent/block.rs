//! One block of a pair, measured by its sender.

use crate::FleetError;
use crate::message::{Answer, BlockResult, JoinOrder, Order, Request};
use crate::store::AgentInfo;
use crate::wire::Wire;
use crate::wire::conversation::{other_answer, talk};
use stacklab_campaign::rig::{AgentProcess, Rigs, TrialHosts, Way};
use stacklab_model::{CpuScope, SELF_ARMS};
use stacklab_traffic::host::zone::route_to;
use stacklab_traffic::protocol::AgentClient;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

pub(crate) fn measure(
    order: &Order,
    own: &AgentInfo,
    wire: &dyn Wire,
    interrupted: &'static AtomicBool,
) -> Result<BlockResult, FleetError> {
    let ends = Instant::now() + order.lease;
    let (study, plan) = order.study.check()?;
    let mut ways = BTreeMap::new();
    for cell in &study.cells {
        let here = own.address(cell.family)?;
        let there = order.receiver.address(cell.family)?;
        let route = route_to(&there, Some(&here)).map_err(|error| {
            FleetError::agent(&own.name, format!("it has no route to {}: {error}", order.receiver.name))
        })?;
        ways.insert(cell.family, Way { here: route, there });
    }
    let (_process, mut here) = AgentProcess::here(interrupted)?;
    let mut there = join(order, own, wire, interrupted)?;
    here.must_end(ends);
    there.must_end(ends);
    let mut rigs = Rigs::both_families(order.receiver.name.clone(), ways, false, [here, there])
        .map_err(|error| FleetError::Campaign(error.into()))?;
    let mut hosts = rigs.hosts()?;
    for (host, agent) in hosts.iter_mut().zip([own, &order.receiver]) {
        host.kind.clone_from(&agent.name);
    }
    let trials = plan.active(&study, plan.block(order.key.block), &[], &study.questions());
    let mut runs = Vec::new();
    for arms in plan.together(&trials) {
        for mut run in rigs.run(&study, &plan, arms, &runs)? {
            // Findings need them of the comparison of an arm with itself only.
            if !SELF_ARMS.contains(&run.trial.cell.replica.as_str()) {
                run.host_reports.clear();
            }
            runs.push(run);
        }
    }
    let cpu_scope = if plan.interleaves_any() { CpuScope::Threads } else { rigs.cpu_scope(&study) };
    Ok(BlockResult { path: rigs.describe(&study), cpu_scope, hosts, runs })
}

/// The receiver's agent, as one that this program started itself.
fn join(
    order: &Order,
    own: &AgentInfo,
    wire: &dyn Wire,
    interrupted: &'static AtomicBool,
) -> Result<AgentClient, FleetError> {
    let receiver = &order.receiver.name;
    let request = Request::Join(JoinOrder {
        key: order.key.clone(),
        class: order.class,
        lease: order.lease,
        sender: own.addresses.clone(),
    });
    match talk(wire, receiver, &request, order.lease)? {
        (Answer::Joined, reader, writer) => {
            Ok(AgentClient::new(receiver.clone(), reader, writer, interrupted))
        }
        _ => Err(other_answer(receiver)),
    }
}
