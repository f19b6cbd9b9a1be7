//! A store that counts what is asked of it.

use async_trait::async_trait;
use bytes::Bytes;
use lease_core::{LeaseStore, ObjectKey, Read, StoreError, Version};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

#[derive(Debug)]
pub(crate) struct Counted<S> {
    inner: S,
    count: Arc<AtomicU64>,
}

impl<S> Counted<S> {
    pub(crate) fn new(inner: S) -> (Self, Arc<AtomicU64>) {
        let count = Arc::default();
        (Self { inner, count: Arc::clone(&count) }, count)
    }

    fn one(&self) -> &S {
        self.count.fetch_add(1, Ordering::Relaxed);
        &self.inner
    }
}

#[async_trait]
impl<S: LeaseStore> LeaseStore for Counted<S> {
    async fn read_versioned(
        &self,
        key: &ObjectKey,
        unless: Option<&Version>,
    ) -> Result<Read, StoreError> {
        self.one().read_versioned(key, unless).await
    }

    async fn create_if_absent(
        &self,
        key: &ObjectKey,
        content: Bytes,
    ) -> Result<Version, StoreError> {
        self.one().create_if_absent(key, content).await
    }

    async fn replace_if_match(
        &self,
        key: &ObjectKey,
        content: Bytes,
        version: &Version,
    ) -> Result<Version, StoreError> {
        self.one().replace_if_match(key, content, version).await
    }

    fn needs_probe(&self) -> bool {
        self.inner.needs_probe()
    }
}
