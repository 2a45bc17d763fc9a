//! Providers over HTTP: one adapter, whatever a provider speaks, and the tables in which providers differ.

mod adapter;
mod answer;
mod decoder;
mod service;
mod site;
mod stream;
mod translated;
mod vertex;
mod way;

pub(crate) use self::{
    adapter::{HttpAdapter, HttpAdapterParts, not_available},
    decoder::Decoder,
    service::{Layout, Services},
    site::Site,
    way::{Format, Habits, Received, Way},
};
