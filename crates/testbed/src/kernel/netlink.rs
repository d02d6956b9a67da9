//! Netlink access to links, addresses and queues of the calling thread's network namespace.

use crate::{Attempt, Fault};
use futures_util::TryStreamExt;
use nix::net::if_::if_nametoindex;
use rtnetlink::packet_route::link::{LinkAttribute, LinkMessage};
use rtnetlink::{Handle, LinkMessageBuilder, LinkUnspec};
use tokio::runtime::{Builder, Runtime};

/// A netlink socket. It stays in the namespace of the thread that opened it, wherever it is used.
#[derive(Debug)]
pub struct Netlink {
    runtime: Runtime,
    handle: Handle,
}

impl Netlink {
    /// A socket in the calling thread's namespace.
    pub fn open() -> Result<Self, Fault> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.attempt("start the netlink runtime")?;
        let handle = runtime.block_on(async {
            let (connection, handle, _) = rtnetlink::new_connection().attempt("open a netlink socket")?;
            tokio::spawn(connection);
            Ok(handle)
        })?;
        Ok(Netlink { runtime, handle })
    }

    /// Runs `work` with it.
    pub fn run<T>(&self, work: impl AsyncFnOnce(Handle) -> Result<T, Fault>) -> Result<T, Fault> {
        self.runtime.block_on(work(self.handle.clone()))
    }
}

/// Runs `work` with a netlink socket in the calling thread's namespace.
pub(crate) fn with_netlink<T>(work: impl AsyncFnOnce(Handle) -> Result<T, Fault>) -> Result<T, Fault> {
    Netlink::open()?.run(work)
}

/// The index of an interface of the calling thread's namespace.
pub fn index(name: &str) -> Result<u32, Fault> {
    if_nametoindex(name).attempt(format!("find interface {name}"))
}

pub(crate) async fn interface(netlink: &Handle, name: &str) -> Result<LinkMessage, Fault> {
    let mut found = netlink.link().get().match_name(name).execute();
    let link = found.try_next().await.attempt(format!("find interface {name}"))?;
    link.ok_or("it is not there").attempt(format!("find interface {name}"))
}

pub(crate) fn add_device(device: LinkMessage, what: &str) -> Result<(), Fault> {
    with_netlink(async |netlink| netlink.link().add(device).execute().await.attempt(format!("create {what}")))
}

pub(crate) fn change(
    name: &str,
    attempted: &str,
    set: impl FnOnce(LinkMessageBuilder<LinkUnspec>) -> LinkMessageBuilder<LinkUnspec>,
) -> Result<(), Fault> {
    let changed = set(LinkUnspec::new_with_index(index(name)?)).build();
    with_netlink(async |netlink| {
        netlink.link().change(changed).execute().await.attempt(format!("{attempted} {name}"))
    })
}

pub(crate) fn packets(link: &LinkMessage) -> Option<(u64, u64)> {
    link.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::Stats64(counters) => Some((counters.rx_packets, counters.tx_packets)),
        _ => None,
    })
}
