//! The same test that all gates pass.

use crate::resource::{Fenced, matches_the_model};
use lease_core::testing::MemoryStore;

#[test]
fn a_fenced_object_is_the_model() {
    matches_the_model(256, || Fenced::new(MemoryStore::new(), "orders/balance"));
}

#[test]
fn a_fenced_object_is_the_model_where_versions_count() {
    matches_the_model(64, || Fenced::new(MemoryStore::with_counted_versions(), "orders/balance"));
}
