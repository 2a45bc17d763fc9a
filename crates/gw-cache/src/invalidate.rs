//! Which entries an operator wants gone.

use gw_types::{RouteName, TenantId};

/// Names entries to forget. Every part that is given must fit; a scope without parts fits everything.
///
/// Ask what would go before it goes: `matching` of either cache counts, `invalidate` removes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InvalidationScope {
    /// Only this tenant's.
    pub tenant: Option<TenantId>,
    /// Only this route's.
    pub route: Option<RouteName>,
    /// Only those of an epoch before this one.
    pub before_epoch: Option<u64>,
}

/// What an entry is told by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) tenant: TenantId,
    pub(crate) route: RouteName,
    pub(crate) epoch: u64,
}

impl InvalidationScope {
    pub(crate) fn fits(&self, origin: &Origin) -> bool {
        self.tenant.as_ref().is_none_or(|tenant| *tenant == origin.tenant)
            && self.route.as_ref().is_none_or(|route| *route == origin.route)
            && self.before_epoch.is_none_or(|epoch| origin.epoch < epoch)
    }
}
