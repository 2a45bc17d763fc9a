//! `[residency]`: named groups of regions.

use std::collections::BTreeSet;

use gw_types::Region;

use crate::reader::Node;

/// Reads one group.
pub(super) fn read(node: &Node<'_>) -> Option<BTreeSet<Region>> {
    let mut regions = BTreeSet::new();
    for item in node.filled_list()? {
        if let Some(region) = item.name::<Region>()
            && !regions.insert(region.value.clone())
        {
            item.fault(
                format!("region `{}` stands twice in `{}`", region.value, node.path()),
                "write it once",
            );
        }
    }
    Some(regions)
}
