//! One operation after the other: what each answers, and what it leaves.

use super::{
    Target,
    check::{CaseFailed, refused},
};
use crate::store::{Read, Version};
use bytes::Bytes;
use std::{collections::HashSet, time::Duration};

pub(super) async fn a_missing_object_is_missing(on: &Target) -> Result<(), CaseFailed> {
    let key = on.key("missing")?;
    on.shows_nothing(&key).await?;
    // Also for whoever knew it before it was deleted.
    let known = on.create(&on.key("other")?, "other").await?;
    let read = on.read(&key, Some(&known)).await?;
    ensure!(read == Read::Missing, "reading {key} unless version {known} told {read:?}");
    Ok(())
}

pub(super) async fn what_was_created_is_read_back(on: &Target) -> Result<(), CaseFailed> {
    let key = on.key("object")?;
    let version = on.create(&key, "created").await?;
    on.shows(&key, "created", &version).await
}

pub(super) async fn a_create_of_an_existing_object_changes_nothing(
    on: &Target,
) -> Result<(), CaseFailed> {
    let key = on.key("object")?;
    let version = on.create(&key, "first").await?;
    for content in ["second", "first"] {
        let again = on.store.create_if_absent(&key, Bytes::from(content)).await;
        refused("creating an object that exists", again)?;
        on.shows(&key, "first", &version).await?;
    }
    Ok(())
}

pub(super) async fn a_replace_of_the_current_version_is_read_back(
    on: &Target,
) -> Result<(), CaseFailed> {
    let key = on.key("object")?;
    let mut version = on.create(&key, "created").await?;
    for content in ["once", "twice"] {
        version = on.replace(&key, content, &version).await?;
        on.shows(&key, content, &version).await?;
    }
    // The version as a read tells it is as good as the one that a write returned.
    let (_, told) = on.found(&key).await?;
    version = on.replace(&key, "thrice", &told).await?;
    on.shows(&key, "thrice", &version).await
}

pub(super) async fn a_replace_of_a_stale_version_changes_nothing(
    on: &Target,
) -> Result<(), CaseFailed> {
    let key = on.key("object")?;
    let stale = on.create(&key, "first").await?;
    let version = on.replace(&key, "second", &stale).await?;
    for content in ["third", "first"] {
        let again = on.store.replace_if_match(&key, Bytes::from(content), &stale).await;
        refused("replacing a version that is no longer there", again)?;
        on.shows(&key, "second", &version).await?;
    }
    Ok(())
}

pub(super) async fn a_replace_of_a_missing_object_creates_nothing(
    on: &Target,
) -> Result<(), CaseFailed> {
    let key = on.key("missing")?;
    let version = on.create(&on.key("other")?, "other").await?;
    for content in ["new", "other"] {
        let write = on.store.replace_if_match(&key, Bytes::from(content), &version).await;
        refused("replacing an object that is missing", write)?;
        on.shows_nothing(&key).await?;
    }
    Ok(())
}

pub(super) async fn an_unchanged_object_is_told_as_unchanged(
    on: &Target,
) -> Result<(), CaseFailed> {
    let key = on.key("object")?;
    let known = on.create(&key, "content").await?;
    match on.read(&key, Some(&known)).await? {
        Read::NotModified => Ok(()),
        Read::Found { content, version, .. } if content == "content" && version == known => Ok(()),
        other => Err(CaseFailed::new(format!(
            "reading {key} unless version {known}, which it still has, told {other:?}"
        ))),
    }
}

pub(super) async fn an_unchanged_object_is_not_sent(on: &Target) -> Result<(), CaseFailed> {
    let key = on.key("object")?;
    let created = on.create(&key, "created").await?;
    let replaced = on.replace(&key, "replaced", &created).await?;
    let (_, told) = on.found(&key).await?;
    for known in [&replaced, &told] {
        let read = on.read(&key, Some(known)).await?;
        ensure!(
            read == Read::NotModified,
            "reading {key} unless version {known}, which it still has, told {read:?}, expected \
             NotModified"
        );
    }
    Ok(())
}

pub(super) async fn a_changed_object_is_found_whatever_was_known(
    on: &Target,
) -> Result<(), CaseFailed> {
    let key = on.key("object")?;
    let known = on.create(&key, "old").await?;
    let current = on.replace(&key, "new", &known).await?;
    match on.read(&key, Some(&known)).await? {
        Read::Found { content, version, .. } if content == "new" && version == current => Ok(()),
        other => Err(CaseFailed::new(format!(
            "reading {key} unless version {known} told {other:?}, but it has version {current}"
        ))),
    }
}

pub(super) async fn different_contents_have_different_versions(
    on: &Target,
) -> Result<(), CaseFailed> {
    let key = on.key("object")?;
    let mut version = on.create(&key, "0").await?;
    let mut seen: HashSet<Version> = HashSet::from([version.clone()]);
    // Of one length, of one byte more, and such that only the last byte differs.
    for content in ["1", "2", "2 ", "20", "21", "a longer one"] {
        version = on.replace(&key, content, &version).await?;
        ensure!(
            seen.insert(version.clone()),
            "writing \"{content}\" made version {version}, which an earlier, different content had"
        );
    }
    Ok(())
}

pub(super) async fn the_same_content_has_the_same_version(on: &Target) -> Result<(), CaseFailed> {
    let key = on.key("object")?;
    let first = on.create(&key, "same").await?;
    let between = on.replace(&key, "different", &first).await?;
    let again = on.replace(&key, "same", &between).await?;
    ensure!(first == again, "the same content had version {first} and then version {again}");
    Ok(())
}

pub(super) async fn the_age_of_a_version_is_told(on: &Target) -> Result<(), CaseFailed> {
    let key = on.key("object")?;
    on.create(&key, "content").await?;
    match on.read(&key, None).await? {
        // An hour: nothing that a clock of the store's own could tell of what was just written.
        Read::Found { age: Some(age), .. } if age < Duration::from_secs(3600) => Ok(()),
        other => Err(CaseFailed::new(format!(
            "reading {key}, just created, told {other:?}, expected an age of moments"
        ))),
    }
}
