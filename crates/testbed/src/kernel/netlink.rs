//! Netlink access to links, addresses and queues of the calling thread's network namespace.

use crate::error::{Attempt, Fault};
use futures_util::TryStreamExt;
use rtnetlink::Handle;
use rtnetlink::packet_route::link::{LinkAttribute, LinkMessage};

/// Runs `work` with a netlink socket in the calling thread's namespace.
pub(crate) fn with_netlink<T>(work: impl AsyncFnOnce(Handle) -> Result<T, Fault>) -> Result<T, Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .attempt("start the netlink runtime")?;
    runtime.block_on(async {
        let (connection, handle, _) = rtnetlink::new_connection().attempt("open a netlink socket")?;
        tokio::spawn(connection);
        work(handle).await
    })
}

/// The kernel's data about an interface.
pub(crate) async fn interface(netlink: &Handle, name: &str) -> Result<LinkMessage, Fault> {
    let mut found = netlink.link().get().match_name(name).execute();
    let link = found.try_next().await.attempt(format!("find interface {name}"))?;
    link.ok_or(std::io::Error::from(std::io::ErrorKind::NotFound)).attempt(format!("find interface {name}"))
}

/// Packets that an interface has received and sent.
pub(crate) fn packets(link: &LinkMessage) -> Option<(u64, u64)> {
    link.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::Stats64(counters) => Some((counters.rx_packets, counters.tx_packets)),
        _ => None,
    })
}
