//! What a queue at the end of a link is made of.

/// A queueing discipline to create, or a class of the discipline before it.
pub(crate) struct QueuePart {
    pub kind: &'static str,
    pub is_class: bool,
    pub options: Vec<u8>,
    /// The step, as text that follows `cannot` and precedes the interface's name.
    pub attempted: String,
}

impl QueuePart {
    pub(crate) fn discipline(kind: &'static str, options: Vec<u8>, attempted: &str) -> Self {
        QueuePart { kind, is_class: false, options, attempted: attempted.to_owned() }
    }
}
