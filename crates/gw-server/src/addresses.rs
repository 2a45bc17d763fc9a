//! How many connections each address has.

use std::{collections::HashMap, net::IpAddr, sync::Arc};

use foldhash::fast::FixedState;
use parking_lot::Mutex;

/// Counts the connections of each address up to a bound. Holds an entry for each address that has a connection, so no
/// more than there are connections.
#[derive(Clone, Debug)]
pub(crate) struct Addresses {
    most: u32,
    open: Arc<Mutex<HashMap<IpAddr, u32, FixedState>>>,
}

/// The place of one connection; gives it back on drop.
#[derive(Debug)]
pub(crate) struct AddressPlace {
    address: IpAddr,
    addresses: Addresses,
}

impl Addresses {
    pub(crate) fn new(most: u32) -> Self {
        Self { most, open: Arc::default() }
    }

    /// Takes a place for the address; `None`: it has as many as it may.
    pub(crate) fn take(&self, address: IpAddr) -> Option<AddressPlace> {
        let mut open = self.open.lock();
        let count = open.entry(address).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        Some(AddressPlace { address, addresses: self.clone() })
    }
}

impl Drop for AddressPlace {
    fn drop(&mut self) {
        let mut open = self.addresses.open.lock();
        if let Some(count) = open.get_mut(&self.address) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                open.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::Addresses;

    #[test]
    fn each_address_has_its_own_places_and_gives_them_back() {
        let addresses = Addresses::new(2);
        let at = |last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
        let (one, two) = (addresses.take(at(1)), addresses.take(at(1)));
        assert!(one.is_some() && two.is_some() && addresses.take(at(1)).is_none());
        assert!(addresses.take(at(2)).is_some());
        drop(one);
        assert!(addresses.take(at(1)).is_some());
        drop(two);
        assert!(addresses.open.lock().is_empty(), "an address without a connection is forgotten");
    }
}
