//! The seam that turns a presented key into an identity.

use std::net::IpAddr;

use crate::{KeyName, Secret, TenantId, UtcTime};

/// Who presented a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyIdentity {
    /// The tenant that the key belongs to.
    pub tenant: TenantId,
    /// Which of the tenant's keys it is.
    pub key: KeyName,
}

/// Knows the keys.
///
/// # Contract
/// Compares in constant time over the hash, holds no key in the clear, answers in well under a microsecond per call
/// however many keys there are, and says nothing about why a key is unknown.
pub trait KeyStore: Send + Sync + std::fmt::Debug {
    /// Returns who the key belongs to, or `None` if nobody; asks neither where from nor when.
    fn identify(&self, presented: &Secret) -> Option<KeyIdentity>;

    /// Returns who the key belongs to if it may be used from the address at the instant, or `None`.
    ///
    /// A store whose keys hold everywhere and for ever need not say more than [`KeyStore::identify`].
    fn identify_at(&self, presented: &Secret, _from: IpAddr, _now: UtcTime) -> Option<KeyIdentity> {
        self.identify(presented)
    }

    /// Returns the identity of callers without a key, where the configuration allows them (no file, loopback only).
    fn anonymous(&self) -> Option<KeyIdentity>;
}

/// A block of IP addresses, as `10.0.0.0/8` (RFC 4632) or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

/// Says that a text is no network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a network is an address, or an address and a prefix without bits beyond it, such as `10.0.0.0/8`")]
pub struct NotANetwork;

impl Network {
    /// Returns whether the address is in the block. An IPv4 address that is mapped into IPv6 counts as itself.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                u128::from(u32::from(own) ^ u32::from(other)) >> (32 - u32::from(self.prefix)) == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let differ = u128::from(own) ^ u128::from(other);
                differ.checked_shr(128 - u32::from(self.prefix)).unwrap_or(0) == 0
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

impl std::str::FromStr for Network {
    type Err = NotANetwork;

    fn from_str(text: &str) -> Result<Self, NotANetwork> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| NotANetwork)?;
        let (bits, most) = match address {
            IpAddr::V4(address) => (u128::from(u32::from(address)), 32),
            IpAddr::V6(address) => (u128::from(address), 128),
        };
        let prefix: u8 = prefix.map_or(Ok(most), |prefix| prefix.parse().map_err(|_| NotANetwork))?;
        if prefix > most {
            return Err(NotANetwork);
        }
        let beyond = 1_u128.checked_shl(u32::from(most - prefix)).map_or(u128::MAX, |bit| bit - 1);
        if bits & beyond != 0 {
            return Err(NotANetwork);
        }
        Ok(Self { address, prefix })
    }
}

impl std::fmt::Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::Network;

    fn check(network: &str, address: &str, expected: bool) {
        let parsed: Network = network.parse().unwrap();
        assert_eq!(parsed.contains(address.parse().unwrap()), expected, "{network} {address}");
    }

    #[test]
    fn a_network_holds_its_addresses() {
        check("10.0.0.0/8", "10.255.1.2", true);
        check("10.0.0.0/8", "11.0.0.0", false);
        check("10.0.0.0/8", "::ffff:10.1.1.1", true);
        check("127.0.0.1", "127.0.0.1", true);
        check("127.0.0.1", "127.0.0.2", false);
        check("0.0.0.0/0", "203.0.113.9", true);
        check("0.0.0.0/0", "2001:db8::1", false);
        check("2001:db8::/32", "2001:db8:ffff::1", true);
        check("2001:db8::/32", "2001:db9::", false);
        check("::/0", "2001:db9::", true);
    }

    #[test]
    fn other_texts_are_no_network() {
        for text in
            ["", "10.0.0.1/8", "10.0.0.0/33", "10.0.0/8", "::1/64", "10.0.0.0/", "10.0.0.0/-1", "example.com"]
        {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
        assert_eq!("10.0.0.1".parse::<Network>().unwrap().to_string(), "10.0.0.1/32");
    }
}
