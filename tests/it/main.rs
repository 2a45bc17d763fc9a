//! Whole-gateway tests.
