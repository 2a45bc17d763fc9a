//! The fake provider over real sockets, and the scripted adapter in virtual time.

#[cfg(test)]
mod adapter;
#[cfg(test)]
mod client;
#[cfg(test)]
mod provider;
