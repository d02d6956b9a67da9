//! Waiting until a link can be used and is quiet.

use crate::kernel::netlink::{interface, packets, with_netlink};
use crate::{Attempt, Fault};
use futures_util::TryStreamExt;
use rtnetlink::Handle;
use rtnetlink::packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};
use rtnetlink::packet_route::link::{LinkAttribute, LinkMessage, State};
use std::io;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Timeout for the link. It normally takes a fraction of a second; a loaded machine may take longer.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// The required silence. When a link comes up, IPv6 sends a few multicast listener reports, a few kernel ticks (of up
/// to 10 ms) apart.
const SILENCE: Duration = Duration::from_millis(50);

/// Waits until the interface is up, these addresses are usable, and it sends nothing by itself any more.
pub fn wait_until_quiet(name: &str, addresses: &[IpAddr]) -> Result<(), Fault> {
    with_netlink(async |netlink| {
        let start = Instant::now();
        let mut last_sent = (None, start);
        loop {
            let link = interface(&netlink, name).await?;
            let sent = packets(&link).map(|(_, sent)| sent);
            if last_sent.0 != sent {
                last_sent = (sent, Instant::now());
            }
            let missing = match missing(&netlink, name, addresses, &link).await? {
                None if last_sent.1.elapsed() >= SILENCE => return Ok(()),
                None => "it still sends packets by itself".to_owned(),
                Some(missing) => missing,
            };
            if start.elapsed() > PATIENCE {
                let late = io::Error::new(io::ErrorKind::TimedOut, format!("{missing} after {PATIENCE:?}"));
                return Err(late).attempt(format!("use {name}"));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    })
}

/// The part that is not ready yet.
async fn missing(
    netlink: &Handle,
    name: &str,
    addresses: &[IpAddr],
    link: &LinkMessage,
) -> Result<Option<String>, Fault> {
    // A device that does not track its link's state (as in user-mode Linux) is usable as soon as it is set up.
    let up = [State::Up, State::Unknown].map(LinkAttribute::OperState);
    if !link.attributes.iter().any(|attribute| up.contains(attribute)) {
        return Ok(Some("it is not up".to_owned()));
    }
    let found = netlink.address().get().set_link_index_filter(link.header.index).execute();
    let found: Vec<_> = found.try_collect().await.attempt(format!("read the addresses of {name}"))?;
    for wanted in addresses {
        if !found.iter().any(|message| has(message, *wanted)) {
            return Ok(Some(format!("it has no address {wanted}")));
        }
    }
    Ok(found.iter().any(is_tentative).then(|| "an address of it is still tentative".to_owned()))
}

fn has(message: &AddressMessage, wanted: IpAddr) -> bool {
    message.attributes.contains(&AddressAttribute::Address(wanted))
}

fn is_tentative(message: &AddressMessage) -> bool {
    message.attributes.iter().any(|attribute| match attribute {
        AddressAttribute::Flags(flags) => flags.contains(AddressFlags::Tentative),
        _ => false,
    })
}
