//! The invariants of the design, each at the level of the whole gateway.

mod cache;
mod calls;
mod fidelity;
mod limits;
mod marked;
mod records;
mod routing;
mod secrets;
mod table;
mod twins;
