//! The locks and atomics of this crate: the real ones, or under `--cfg loom` those that a model can interleave.

#[cfg(not(loom))]
pub(crate) use parking_lot::{Mutex, MutexGuard};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic;

#[cfg(loom)]
pub(crate) use self::modelled::Mutex;
#[cfg(loom)]
pub(crate) use loom::sync::{MutexGuard, atomic};

#[cfg(loom)]
mod modelled {
    /// The model's lock with the interface of the real one.
    #[derive(Debug)]
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T: Default> Default for Mutex<T> {
        fn default() -> Self {
            Self::new(T::default())
        }
    }

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.0.lock().expect("a thread of the model panicked")
        }
    }
}
