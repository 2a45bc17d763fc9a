//! The provider that needs no key and no network: built-in answers and scripted failures, the same every time.

mod adapter;
mod answer;
mod question;
mod script;
mod stream;

pub use self::{
    adapter::ScriptedAdapter,
    script::{InvalidScript, Script},
};
