//! What takes packets into the routers: their kernel threads, or the receiver's processors.

use crate::kernel::cpus;
use crate::kernel::router_thread::{RouterThread, start_threads};
use crate::kernel::steering::{count_interrupts, steer_packets};
use crate::path_ends::{PathEnds, ends_of};
use crate::testbed::network::HostChain;
use crate::testbed::path_check::PORT;
use crate::testbed::spokes::Spoke;
use crate::{AtHost, Attempt, Host, INTERFACE, MIDDLE, Node, PathCheck, TestbedError};
use stacklab_model::{Mechanism, RouterQueue};
use std::io;
use std::net::UdpSocket;
use std::thread;
use std::time::Duration;

/// The positions of the hosts in a chain.
const SENDER: usize = 0;
const ROUTERS: [usize; 2] = [1, 2];
const RECEIVER: usize = 3;

/// The processors of what the routers do by themselves; empty: any. Threads, backlogs and translators behind them are
/// on the receiver's: the sender's thread needs its own. A router without a queue works in the sender's place.
pub(crate) fn router_processors(queue: RouterQueue, chain: &HostChain<4>) -> &[usize] {
    match queue {
        RouterQueue::Inline => &[],
        RouterQueue::Thread | RouterQueue::Rps => chain.processors_of(RECEIVER),
    }
}

/// Gives each ingress of the routers its queue. Returns the threads.
pub(crate) fn start_queues(
    queue: RouterQueue,
    chain: &HostChain<4>,
    spokes: &[Spoke],
) -> Result<Vec<RouterThread>, TestbedError> {
    let processors = router_processors(queue, chain);
    if queue == RouterQueue::Rps && processors.is_empty() {
        let reason =
            "the receiver has none that the sender does not use: router_queue \"rps\" needs two processors";
        return Err(reason).attempt("steer packets to a processor").at(Node::Receiver);
    }
    let mut threads = Vec::new();
    let routers = ROUTERS.iter().map(|place| &chain.hosts[*place]);
    for router in routers.chain(spokes.iter().map(|spoke| &spoke.router)) {
        let ingresses = list_ingresses(router, spokes);
        match queue {
            RouterQueue::Inline => {}
            RouterQueue::Thread => {
                threads.extend(router.inside(|| start_threads(&ingresses, processors))?);
            }
            RouterQueue::Rps => router.inside(|| steer_packets(&ingresses, processors))?,
        }
    }
    Ok(threads)
}

/// The interfaces at which packets enter a router. Each customer has a middle link to the far one.
fn list_ingresses(router: &Host, spokes: &[Spoke]) -> Vec<&'static str> {
    let mut ingresses = vec![INTERFACE, MIDDLE];
    if router.node() == Node::Router2 {
        ingresses.extend(spokes.iter().map(|spoke| spoke.customer.middle()));
    }
    ingresses
}

/// Time in which a steered datagram has passed both routers.
const STEERING_TIME: Duration = Duration::from_millis(10);
const STEERED_DATAGRAMS: usize = 16;
/// Where nothing is steered, the receiver's processors may have been busy with something else.
const MAX_ATTEMPTS: usize = 100;

/// Sends a few datagrams from the sender's processors, for which the receiver's must be interrupted.
pub(crate) fn check_steering(
    chain: &HostChain<4>,
    mechanism: Mechanism,
    carried: &PathCheck,
) -> Result<(), TestbedError> {
    let ends = ends_of(carried.customer, mechanism, carried.family).expect("the family is carried");
    let before = count_interrupts().at(Node::Router1)?;
    for _ in 0..MAX_ATTEMPTS {
        chain.hosts[SENDER].inside(|| {
            cpus::stay_on(chain.processors_of(SENDER))
                .and_then(|()| send_datagrams(&ends))
                .attempt("send datagrams that are to be steered")
        })?;
        thread::sleep(STEERING_TIME);
        if count_interrupts().at(Node::Router1)? > before {
            return Ok(());
        }
    }
    Err("no processor was interrupted for it (/proc/net/softnet_stat)")
        .attempt("steer packets")
        .at(Node::Router1)
}

fn send_datagrams(ends: &PathEnds) -> io::Result<()> {
    let socket = UdpSocket::bind((ends.sender, 0))?;
    for _ in 0..STEERED_DATAGRAMS {
        // Nobody listens there, which a later one may hear of.
        let _ = socket.send_to(b"stacklab", (ends.destination, PORT));
    }
    Ok(())
}
