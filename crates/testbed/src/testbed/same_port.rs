//! Several customers at the same time, all from the same source port: the receiver must see each as another, from the
//! ports of that customer, and each must get its own answer.

use crate::path_ends::ends_of;
use crate::testbed::path_check::{PORT, TIMEOUT, connect, refuse_family, socket};
use crate::{CustomerId, Fault, Host, TestbedError};
use stacklab_model::{Family, Mechanism};
use std::net::{SocketAddr, UdpSocket};
use std::time::Instant;

/// The source port of all customers.
const SOURCE_PORT: u16 = 40_000;

/// Checks that customers of one testbed do not mix. Their paths have been checked alone.
pub(crate) fn check_customers(
    [sender, receiver]: [&Host; 2],
    mechanism: Mechanism,
    family: Family,
    customers: u32,
) -> Result<(), TestbedError> {
    let all = CustomerId::list(customers);
    let Some(ends) = ends_of(CustomerId::FIRST, mechanism, family) else { return Ok(()) };
    let at = receiver.inside(|| socket(ends.receiver, PORT, None))?;
    let mut flows = Vec::new();
    for customer in &all {
        flows.push(sender.inside(|| open_flow(*customer, mechanism, family))?);
    }
    let found = exchange(&flows, &at, &all, mechanism, family);
    found.map_err(|reason| refuse_family(mechanism, family, reason))
}

/// Each customer is heard, and gets its own answer.
fn exchange(
    flows: &[UdpSocket],
    at: &UdpSocket,
    all: &[CustomerId],
    mechanism: Mechanism,
    family: Family,
) -> Result<(), String> {
    let sources = collect_sources(flows, at, all, mechanism, family)?;
    for ((customer, source), flow) in all.iter().zip(&sources).zip(flows) {
        let start = Instant::now();
        // What does not arrive, over links with loss or delay, is sent again.
        loop {
            answer(at, *customer, *source)?;
            match receive_answer(flow, *customer)? {
                Some(()) => break,
                None if start.elapsed() > TIMEOUT => {
                    return Err(format!("customer {} got no answer", customer.number()));
                }
                None => {}
            }
        }
    }
    Ok(())
}

fn open_flow(customer: CustomerId, mechanism: Mechanism, family: Family) -> Result<UdpSocket, Fault> {
    let ends = ends_of(customer, mechanism, family).expect("the family is carried");
    let flow = socket(ends.sender, SOURCE_PORT, Some(customer.uplink()))?;
    connect(&flow, SocketAddr::new(ends.destination, PORT))?;
    Ok(flow)
}

/// Sends a datagram of each customer until all have arrived. Returns where each came from.
fn collect_sources(
    flows: &[UdpSocket],
    at: &UdpSocket,
    all: &[CustomerId],
    mechanism: Mechanism,
    family: Family,
) -> Result<Vec<SocketAddr>, String> {
    let mut sources: Vec<Option<SocketAddr>> = vec![None; all.len()];
    let start = Instant::now();
    while sources.contains(&None) {
        if start.elapsed() > TIMEOUT {
            let missing = all.iter().zip(&sources).find(|(_, source)| source.is_none());
            let number = missing.map_or(0, |(customer, _)| customer.number());
            return Err(format!(
                "of {} customers that send from port {SOURCE_PORT} at the same time, nothing of customer {number} \
                 arrived within {} s",
                all.len(),
                TIMEOUT.as_secs()
            ));
        }
        for (customer, flow) in all.iter().zip(flows) {
            // What does not arrive is sent again.
            let _ = flow.send(&[customer.number()]);
        }
        let mut word = [0; 2];
        while let Ok((1, source)) = at.recv_from(&mut word) {
            let Some(place) = all.iter().position(|customer| customer.number() == word[0]) else { continue };
            all[place].check_source(source, mechanism, family)?;
            sources[place] = Some(source);
        }
    }
    let sources: Vec<SocketAddr> = sources.into_iter().flatten().collect();
    for (place, source) in sources.iter().enumerate() {
        if let Some(other) = sources[..place].iter().position(|other| other == source) {
            return Err(format!("customers {} and {} both arrive from {source}", other + 1, place + 1));
        }
    }
    Ok(sources)
}

fn answer(at: &UdpSocket, customer: CustomerId, source: SocketAddr) -> Result<(), String> {
    let sent = at.send_to(&[customer.number(), 0], source);
    sent.map(drop).map_err(|error| format!("customer {} cannot be answered: {error}", customer.number()))
}

/// `None` if nothing has come.
fn receive_answer(flow: &UdpSocket, customer: CustomerId) -> Result<Option<()>, String> {
    let number = customer.number();
    let mut word = [0; 3];
    match flow.recv(&mut word) {
        Ok(2) if word[0] == number => Ok(Some(())),
        Ok(_) => Err(format!("customer {number} got the answer to customer {}", word[0])),
        Err(_) => Ok(None),
    }
}
