//! A store that tells of every read, so that the parent can count them.

use crate::{
    child::say,
    wire::{Moment, Say},
};
use async_trait::async_trait;
use bytes::Bytes;
use lease_core::{LeaseStore, ObjectKey, Read, StoreError, Version};

#[derive(Debug)]
pub(crate) struct Counted<S>(pub(crate) S);

#[async_trait]
impl<S: LeaseStore> LeaseStore for Counted<S> {
    async fn read_versioned(
        &self,
        key: &ObjectKey,
        unless: Option<&Version>,
    ) -> Result<Read, StoreError> {
        say(&Say::Read { at: Moment::now() });
        self.0.read_versioned(key, unless).await
    }

    async fn create_if_absent(
        &self,
        key: &ObjectKey,
        content: Bytes,
    ) -> Result<Version, StoreError> {
        self.0.create_if_absent(key, content).await
    }

    async fn replace_if_match(
        &self,
        key: &ObjectKey,
        content: Bytes,
        version: &Version,
    ) -> Result<Version, StoreError> {
        self.0.replace_if_match(key, content, version).await
    }

    fn needs_probe(&self) -> bool {
        self.0.needs_probe()
    }
}
