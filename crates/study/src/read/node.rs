//! Values of a study file with their source locations.

use crate::diagnostics::{Location, Problems};
use crate::language::leaf::{self, ValueError};
use crate::parse::tree::Located;

/// A value and its source location.
#[derive(Clone)]
pub(super) struct At<T> {
    pub(super) value: T,
    pub(super) place: Location,
}

/// A value that is present and valid.
pub(super) fn at<T>(
    node: Option<&Located>,
    read: impl Fn(&Located) -> Result<T, ValueError>,
    problems: &Problems,
) -> Option<At<T>> {
    let node = node.filter(|node| !problems.known_at(&node.place))?;
    Some(At { value: read(node).ok()?, place: node.place.clone() })
}

/// The valid items of a list.
pub(super) fn items<T>(
    node: Option<&Located>,
    read: impl Fn(&Located) -> Result<T, ValueError>,
    problems: &Problems,
) -> Vec<At<T>> {
    let items = node.map_or(&[][..], |node| node.items());
    items.iter().filter_map(|item| at(Some(item), &read, problems)).collect()
}

/// A whole number; its bounds have been checked.
pub(super) fn whole(node: &Located) -> Result<u32, ValueError> {
    leaf::integer(node, 0, i64::from(u32::MAX)).map(|integer| integer as u32)
}

/// Nanoseconds; the bounds have been checked.
pub(super) fn nanoseconds(node: &Located) -> Result<u64, ValueError> {
    leaf::duration(node, "0s", "100000h")
}
