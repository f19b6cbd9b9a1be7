//! Contents and keys: nothing is rewritten, cut, or mixed up.

use super::{
    Target,
    check::{CaseFailed, refused},
};
use crate::store::{MAX_OBJECT_BYTES, StoreError};
use bytes::Bytes;

pub(super) async fn empty_content_is_content(on: &Target) -> Result<(), CaseFailed> {
    let key = on.key("object")?;
    let empty = on.create(&key, "").await?;
    on.shows(&key, "", &empty).await?;
    let again = on.store.create_if_absent(&key, Bytes::from("new")).await;
    refused("creating an object that exists, but is empty", again)?;
    let full = on.replace(&key, "full", &empty).await?;
    let empty = on.replace(&key, "", &full).await?;
    on.shows(&key, "", &empty).await
}

pub(super) async fn binary_content_is_exact(on: &Target) -> Result<(), CaseFailed> {
    let every_byte: Vec<u8> = (0..=255).chain((0..=255).rev()).collect();
    let odd_ends: [&[u8]; 5] = [b"\r\n", b"\0", b"\xff\xfe\xfd", b" \n\t ", b"\xef\xbb\xbf{}\x1a"];
    for (index, content) in odd_ends.into_iter().chain([&every_byte[..]]).enumerate() {
        let key = on.key(&format!("object-{index}"))?;
        let version = on.create(&key, content.to_vec()).await?;
        on.shows(&key, content.to_vec(), &version).await?;
    }
    Ok(())
}

pub(super) async fn exactly_64_kib_are_read_back(on: &Target) -> Result<(), CaseFailed> {
    let key = on.key("object")?;
    for (length, byte) in [(MAX_OBJECT_BYTES - 1, b'a'), (MAX_OBJECT_BYTES, b'b')] {
        let key = on.key(&format!("created-{length}"))?;
        let version = on.create(&key, vec![byte; length]).await?;
        on.shows(&key, vec![byte; length], &version).await?;
    }
    let small = on.create(&key, "small").await?;
    let large = on.replace(&key, vec![b'c'; MAX_OBJECT_BYTES], &small).await?;
    on.shows(&key, vec![b'c'; MAX_OBJECT_BYTES], &large).await
}

pub(super) async fn one_byte_more_is_corrupt_and_replaceable(
    on: &Target,
) -> Result<(), CaseFailed> {
    let key = on.key("object")?;
    let written = on.create(&key, vec![b'x'; MAX_OBJECT_BYTES + 1]).await?;
    let told = match on.store.read_versioned(&key, None).await {
        Err(StoreError::Corrupt { version, .. }) => version,
        Err(other) => {
            let kind = other.kind();
            return Err(CaseFailed::new(format!("reading it told {kind:?}, not Corrupt: {other}")));
        }
        Ok(read) => {
            let found = format!("{read:?}").len();
            return Err(CaseFailed::new(format!(
                "reading {} bytes was no error (what was read has {found} characters)",
                MAX_OBJECT_BYTES + 1
            )));
        }
    };
    ensure!(told == written, "the write made version {written:?}, the error tells {told:?}");
    let version = on.replace(&key, "small", &told).await?;
    on.shows(&key, "small", &version).await
}

pub(super) async fn deep_keys_are_keys(on: &Target) -> Result<(), CaseFailed> {
    let deep = on.key("a/b/c/d/e/f/g/h/lease.json")?;
    let long = on.key(&format!("{}/lease.json", "s".repeat(200)))?;
    for key in [&deep, &long] {
        on.shows_nothing(key).await?;
        let first = on.create(key, "deep").await?;
        let second = on.replace(key, "deeper", &first).await?;
        on.shows(key, "deeper", &second).await?;
    }
    Ok(())
}

pub(super) async fn keys_are_independent(on: &Target) -> Result<(), CaseFailed> {
    // Names that differ by one byte, by a suffix, and in their folder only.
    let names = ["a", "b", "a.json", "a-", "_a", "x/a", "y/a", "x/a.json"];
    let mut objects = Vec::new();
    for name in names {
        let key = on.key(name)?;
        on.shows_nothing(&key).await?;
        let version = on.create(&key, name).await?;
        objects.push((key, name, version));
    }
    if let [(first, ..), (_, _, of_another), ..] = &objects[..] {
        let write = on.store.replace_if_match(first, Bytes::from("mixed up"), of_another).await;
        refused("replacing an object by the version of another", write)?;
    }
    for (key, name, version) in &objects {
        on.shows(key, *name, version).await?;
    }
    Ok(())
}
