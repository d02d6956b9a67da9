//! A manual testbed (`stacklab lab`): what is built, and the process that holds it.

pub mod state;

use crate::CampaignError;
use crate::own_program;
use crate::rig::{translators, without_routers};
use stacklab_guests::{GuestHosted, Placement, Requirements, find_placement, prepare, shell};
use stacklab_model::{Family, Mechanism, RoutedKind, System, Systems, Topology};
use stacklab_study::Study;
use stacklab_testbed::RunningProcess;
use stacklab_testbed::{
    AGENT, CustomerId, Host, Node, Routed, RoutedSpec, Router, RouterInterface, Site, Testbed, clear, ends,
    enter, list_router_interfaces,
};
use state::{ANNOUNCE, HostLocation, POLL_INTERVAL, RunningHost, RunningTestbed, describe_failure, socket};
use std::any::Any;
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// A testbed of any kind, which is removed when this is dropped.
type Held = Box<dyn Any>;

/// Builds the testbed, reports it in a line, and holds it until `ended`.
pub fn hold(
    study: &Study,
    row: Option<RoutedKind>,
    place: &Placement,
    ended: &AtomicBool,
) -> Result<(), CampaignError> {
    enter()?;
    let program = own_program()?;
    let (up, held) = match (row, &study.topology) {
        (Some(row), &Topology::Routed(links)) => {
            let needs = Requirements {
                rows: vec![row],
                link_config: study.link_config.clone(),
                links,
                forward_only: study.flows_forward_only(),
                watches_memory: false,
            };
            match find_placement(&needs, place)? {
                Some(system) => in_guest(&system, &needs, &program)?,
                None => on_this_kernel(&needs, &program)?,
            }
        }
        (_, Topology::Wifi(_)) => {
            return Err(CampaignError::Usage(
                "a Wi-Fi network cannot be held yet: stacklab run builds it".to_owned(),
            ));
        }
        _ => link(study, &program)?,
    };
    let mut line = serde_json::to_vec(&up).map_err(io::Error::from).map_err(describe_failure(ANNOUNCE))?;
    line.push(b'\n');
    io::stdout().write_all(&line).and_then(|()| io::stdout().flush()).map_err(describe_failure(ANNOUNCE))?;
    // Ended by `lab down`: everything is removed in order, including the folder.
    while !ended.load(Ordering::Relaxed) {
        std::thread::sleep(POLL_INTERVAL);
    }
    // Processes that were left running in the background on the testbed's hosts.
    let hosts: Vec<u32> =
        up.processes().filter(|process| *process != up.holder).map(|process| process.pid).collect();
    clear(&hosts);
    drop(held);
    // The socket exists if the testbed was inside a guest.
    let _ = socket().and_then(std::fs::remove_file);
    Ok(())
}

fn link(study: &Study, program: &Path) -> Result<(RunningTestbed, Held), CampaignError> {
    let testbed = Testbed::build(&study.link_config, program, &AGENT)?;
    let hosts = testbed.hosts().iter().map(locate_host).collect();
    let receiver = testbed.hosts().iter().find(|host| host.node() == Node::Receiver);
    let destination = receiver.map(|receiver| receiver.addresses()[0]);
    Ok((RunningTestbed::new(testbed.describe(), hosts, true, destination)?, Box::new(testbed)))
}

fn locate_host(host: &Host) -> io::Result<RunningHost> {
    let location = RunningProcess::of(host.pid()).map(HostLocation::Process)?;
    Ok(RunningHost::new(host.node(), location, &host.addresses()))
}

fn on_this_kernel(needs: &Requirements, program: &Path) -> Result<(RunningTestbed, Held), CampaignError> {
    let plan = &needs.specs(None)[0];
    let testbed = Routed::build_with(plan, program, &AGENT, prepare)?;
    let mut hosts = Vec::new();
    for node in testbed.list_nodes() {
        let process = RunningProcess::of(testbed.pid(node)).map_err(describe_failure(ANNOUNCE))?;
        hosts.push(HostLocation::Process(process));
    }
    Ok((up_of_row(plan, "", true, hosts)?, Box::new(testbed)))
}

fn in_guest(
    system: &System,
    needs: &Requirements,
    program: &Path,
) -> Result<(RunningTestbed, Held), CampaignError> {
    let (guest, testbeds, streams) = GuestHosted::boot(system, needs, program, shell::MAX_COMMANDS)?;
    let path = socket().map_err(describe_failure("keep the testbed's state"))?;
    shell::listen(&path, streams).map_err(describe_failure(&format!("listen at {}", path.display())))?;
    let place = format!(" inside {}", guest.version);
    // A host's place on the path is its number for commands. Further customers' routers follow.
    let spec = &testbeds[0].spec;
    let hosts = (0..list_nodes(spec).len()).map(HostLocation::Guest).collect();
    let up = up_of_row(spec, &place, system.is_uml(), hosts)?;
    // The agents end with their streams, and the hosts with them.
    Ok((up, Box::new((testbeds, guest))))
}

/// The hosts of a routed testbed: four, and a near router for each customer after the first.
fn list_nodes(plan: &RoutedSpec) -> Vec<Node> {
    let customers = CustomerId::list(plan.kind.customers).into_iter().skip(1);
    Node::ALL.into_iter().chain(customers.map(Node::CustomerRouter)).collect()
}

/// A routed testbed.
fn up_of_row(
    plan: &RoutedSpec,
    inside: &str,
    files: bool,
    locations: Vec<HostLocation>,
) -> Result<RunningTestbed, CampaignError> {
    let RoutedKind { mechanism, customers, .. } = plan.kind;
    let translators = translators(plan);
    let mut hosts = Vec::new();
    for (node, location) in list_nodes(plan).into_iter().zip(locations) {
        let host = RunningHost::new(node, location, &addresses(mechanism, node));
        hosts.push(host.with_interfaces(list_interfaces(plan, node)));
    }
    let each = if customers > 1 { format!("{customers} customers: ") } else { String::new() };
    let testbed = format!(
        "{each}client - router - router - client{inside}, {mechanism}{translators} between the routers"
    );
    let destination = Family::ALL.iter().find_map(|family| ends(mechanism, *family));
    RunningTestbed::new(testbed, Ok(hosts), files, destination.map(|ends| ends.destination))
}

/// The interfaces of a router, and those of a sender that has links of several customers; none of another client.
fn list_interfaces(plan: &RoutedSpec, node: Node) -> Vec<RouterInterface> {
    match node {
        Node::Router1 => list_router_interfaces(&plan_router(plan, Site::Near)),
        Node::CustomerRouter(customer) => {
            list_router_interfaces(&Router { customer, ..plan_router(plan, Site::Near) })
        }
        Node::Router2 => list_router_interfaces(&plan_router(plan, Site::Far)),
        Node::Sender if plan.kind.customers > 1 => list_uplinks(plan),
        Node::Sender | Node::Receiver | Node::AccessPoint | Node::Station(_) => Vec::new(),
    }
}

/// The router of a site, as far as its interfaces depend on it.
fn plan_router(plan: &RoutedSpec, site: Site) -> Router {
    let [near, far] = &plan.translates;
    let by = if site == Site::Near { near.by } else { far.by };
    let router = Router::of_chain(site, plan.kind.mechanism, plan.link_config.mtu, by);
    Router { customers: plan.kind.customers, ..router }
}

/// The sender's links, one for each customer.
fn list_uplinks(plan: &RoutedSpec) -> Vec<RouterInterface> {
    let mut uplinks = Vec::new();
    for customer in CustomerId::list(plan.kind.customers) {
        let families =
            Family::ALL.iter().filter_map(|family| customer.describe(plan.kind.mechanism, *family));
        let addresses = families.map(|described| described.uplink.address).collect();
        uplinks.push(RouterInterface { name: customer.uplink(), addresses });
    }
    uplinks
}

/// A host's own addresses, each with the address that the other end uses, if that differs.
fn addresses(mechanism: Mechanism, node: Node) -> Vec<IpAddr> {
    let mut addresses = Vec::new();
    for ends in Family::ALL.iter().filter_map(|family| ends(mechanism, *family)) {
        let [own, called] = match node {
            Node::Sender => [ends.sender, ends.source],
            Node::Receiver => [ends.receiver, ends.destination],
            Node::Router1
            | Node::Router2
            | Node::AccessPoint
            | Node::Station(_)
            | Node::CustomerRouter(_) => continue,
        };
        addresses.push(own);
        if called != own {
            addresses.push(called);
        }
    }
    addresses
}

/// The routed testbed of a study with routers that is built: the first one, or that of the mechanism. An error if the
/// study has none, or hosts that cannot be entered.
pub fn testbed_of(
    study: &Study,
    asked: Option<Mechanism>,
    place: &Placement,
) -> Result<Option<RoutedKind>, CampaignError> {
    let mechanisms = study.mechanisms();
    if *place != Placement::WhereNeeded && mechanisms.is_empty() {
        return Err(without_routers());
    }
    let routers = study.rows().into_iter().map(|row| row.routers);
    if study.systems().into_iter().chain(routers).any(|systems| systems != Systems::NAMESPACES) {
        let what = "only testbeds of namespaces can be entered; some hosts of this study are not namespaces";
        return Err(CampaignError::Usage(format!(
            "{what}: --set 'factors.os=[\"namespace\"]', and factors.router_os where the study has it"
        )));
    }
    let mut rows = study.rows().into_iter();
    let row = rows.find(|row| asked.is_none_or(|asked| row.mechanism == asked));
    if let (Some(asked), None) = (asked, &row) {
        let names: Vec<&str> = mechanisms.iter().map(|mechanism| mechanism.name()).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(CampaignError::Usage(format!(
            "the study's testbeds have no mechanism {asked}: they have {names}"
        )));
    }
    Ok(row)
}
