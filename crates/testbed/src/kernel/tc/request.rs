//! Requests to create and remove queueing disciplines and classes.

use futures_util::StreamExt;
use rtnetlink::Handle;
use rtnetlink::packet_core::{
    DefaultNla, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use rtnetlink::packet_route::RouteNetlinkMessage::{self, NewQueueDiscipline};
use rtnetlink::packet_route::tc::{TcAttribute, TcHandle, TcMessage};

/// Attribute of linux/rtnetlink.h.
const TCA_OPTIONS: u16 = 2;

/// Adds a queueing discipline at an interface's root.
pub(crate) async fn add_queue(
    netlink: &Handle,
    index: u32,
    kind: &str,
    options: Vec<u8>,
) -> Result<(), rtnetlink::Error> {
    let at = (TcHandle::ROOT, TcHandle::UNSPEC);
    create(netlink, NewQueueDiscipline, index, at, kind, options).await
}

/// Creates a queueing discipline, or a class of one, with a parent and a handle.
pub(crate) async fn create(
    netlink: &Handle,
    what: fn(TcMessage) -> RouteNetlinkMessage,
    index: u32,
    (parent, handle): (TcHandle, TcHandle),
    kind: &str,
    options: Vec<u8>,
) -> Result<(), rtnetlink::Error> {
    let mut message = TcMessage::with_index(index as i32);
    (message.header.parent, message.header.handle) = (parent, handle);
    message.attributes =
        vec![TcAttribute::Kind(kind.to_owned()), TcAttribute::Other(DefaultNla::new(TCA_OPTIONS, options))];
    ask(netlink, what(message), NLM_F_CREATE | NLM_F_EXCL).await
}

/// Removes the queueing discipline at an interface's root.
pub(crate) async fn remove_root(netlink: &Handle, index: u32) -> Result<(), rtnetlink::Error> {
    let mut message = TcMessage::with_index(index as i32);
    message.header.parent = TcHandle::ROOT;
    ask(netlink, RouteNetlinkMessage::DelQueueDiscipline(message), 0).await
}

async fn ask(netlink: &Handle, message: RouteNetlinkMessage, flags: u16) -> Result<(), rtnetlink::Error> {
    let mut request = NetlinkMessage::from(message);
    request.header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
    let mut answers = netlink.clone().request(request)?;
    while let Some(answer) = answers.next().await {
        if let NetlinkPayload::Error(error) = answer.payload {
            return Err(rtnetlink::Error::NetlinkError(error));
        }
    }
    Ok(())
}
