//! Whole snapshots as streams: the header and the database under one seal.
//!
//! These are the blocking halves, for whoever has a file on both sides. [`Writer`](crate::Writer) and
//! [`Catalog`](crate::Catalog) run them beside an object store, on a thread of their own.

use crate::{
    catalog::{Refusal, Uncheckable, Verdict, weigh},
    cipher::{CHUNK_BYTES, Cipher, OpenError, Unopenable},
    header::{Header, MAX_START_BYTES, Start},
    name::{Application, Layout, SnapshotName},
};
use std::io::{self, Read, Write};

/// Seals a snapshot: `header`, then all that `database` gives, into `sink`. Returns how many bytes
/// the database has.
///
/// The key to keep it under is [`Layout::key`] of [`Header::name`], and no other.
///
/// ```
/// use snapshot_format::{
///     cipher::Cipher,
///     fencing::Epoch,
///     header::Header,
///     lease_core::{auth::ClusterSecret, key::{ClusterName, InstanceId}},
///     name::{Application, Layout},
///     stream::{self, Headerless},
/// };
///
/// let cipher = Cipher::new(&ClusterSecret::new(b"kX0qk8m1JmY0jv0s2gk1mZc5c0o3n9Qb")?);
/// let layout = Layout::new(Application::new("orders")?, ClusterName::new("prod")?);
/// let header = Header {
///     cluster: layout.cluster().clone(),
///     epoch: Epoch::try_from(7)?,
///     instance_id: InstanceId::random()?,
///     created_at: "2026-10-12T09:58:41.517Z".parse()?,
///     suffix: None,
/// };
/// let mut sealed = Vec::new();
/// stream::seal(&cipher, layout.application(), &header, &b"a database"[..], &mut sealed)?;
///
/// let (name, mut database) = (header.name(), Vec::new());
/// let opened = stream::open(&cipher, &layout, &name, Headerless::Refuse, &*sealed, &mut database)?;
/// assert_eq!((opened.header, &*database), (Some(header), &b"a database"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`SealError`] if either side fails. What is in the sink then is cut, and does not open.
pub fn seal(
    cipher: &Cipher,
    application: &Application,
    header: &Header,
    mut database: impl Read,
    sink: impl Write,
) -> Result<u64, SealError> {
    let mut sealer = cipher.seal(sink).map_err(SealError::Sink)?;
    sealer.write_all(header.encode(application).as_bytes()).map_err(SealError::Sink)?;
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut bytes = 0;
    loop {
        match database.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => {
                sealer.write_all(&buffer[..read]).map_err(SealError::Sink)?;
                bytes += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(SealError::Database(error)),
        }
    }
    sealer.finish().and_then(|mut sink| sink.flush()).map_err(SealError::Sink)?;
    Ok(bytes)
}

/// Sealing failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// The database could not be read.
    #[error("the database to seal cannot be read; see the cause, nothing was stored")]
    Database(#[source] io::Error),
    /// What was sealed could not be written.
    #[error("what was sealed cannot be written; see the cause, what is there is cut")]
    Sink(#[source] io::Error),
}

/// What to do with a snapshot that was written before there were headers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Headerless {
    /// It is an error.
    #[default]
    Refuse,
    /// Take it: nothing proves its name, and the rules of a takeover or an operator allow it.
    Accept,
}

/// What was opened, all of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opened {
    /// What it says about itself; `None` for a snapshot without a header.
    pub header: Option<Header>,
    /// The size of the database in bytes.
    pub database_bytes: u64,
}

/// Opens the snapshot `sealed`, which is kept under `name`, and writes its database to `sink`.
///
/// Nothing is written before the header is verified against the name. What was written counts for
/// nothing until this returns: only then is it known that nothing is missing at the end. Write to a
/// temporary file, and sync it yourself.
///
/// # Errors
///
/// [`RestoreError`] says what is wrong, and with which side.
pub fn open(
    cipher: &Cipher,
    layout: &Layout,
    name: &SnapshotName,
    headerless: Headerless,
    sealed: impl Read,
    mut sink: impl Write,
) -> Result<Opened, RestoreError> {
    let mut opener = cipher.open(sealed).map_err(at_start)?;
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut filled = opener.fill(&mut buffer[..MAX_START_BYTES]).map_err(at_start)?;
    let (header, start) = match Start::read(layout.application(), &buffer[..filled]) {
        Start::Headerless if headerless == Headerless::Accept => (None, 0),
        start => {
            let start_bytes = start.header_bytes();
            match weigh(layout, name, start) {
                Verdict::Verified(header) => (Some(header), start_bytes),
                other => return Err(not_verified(other)),
            }
        }
    };
    let mut database_bytes = 0;
    let mut from = start;
    while filled > 0 {
        sink.write_all(&buffer[from..filled]).map_err(RestoreError::Sink)?;
        database_bytes += (filled - from) as u64;
        from = 0;
        filled = opener.read_sealed(&mut buffer).map_err(|error| match error {
            OpenError::Source(source) => RestoreError::Source(source),
            OpenError::Unopenable(why) => RestoreError::Damaged(why),
        })?;
    }
    sink.flush().map_err(RestoreError::Sink)?;
    Ok(Opened { header, database_bytes })
}

fn at_start(error: OpenError) -> RestoreError {
    match error {
        OpenError::Source(source) => RestoreError::Source(source),
        OpenError::Unopenable(why) => RestoreError::Refused(Refusal::DoesNotOpen { why }),
    }
}

fn not_verified(verdict: Verdict) -> RestoreError {
    match verdict {
        Verdict::Refused(why) => RestoreError::Refused(why),
        Verdict::Unchecked(Uncheckable::NewerFormat { format }) => {
            RestoreError::NewerFormat { format }
        }
        Verdict::Legacy | Verdict::Verified(_) | Verdict::Unchecked(_) => RestoreError::Headerless,
    }
}

/// A snapshot was not restored. What was written of it is to be thrown away.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// It changed, or is gone, since it was listed.
    #[error("the snapshot changed, or is gone, since it was listed; list again")]
    Changed,
    /// Its start is what it must be; something behind it is not.
    #[error("the snapshot is damaged behind its header: {0}; no older one may stand in for it")]
    Damaged(#[source] Unopenable),
    /// It has no header, and that was not to be accepted.
    #[error(
        "the snapshot has no header, so that nothing proves its name; an operator may accept it"
    )]
    Headerless,
    /// A newer version wrote it.
    #[error(
        "the snapshot has format {format}, which this version cannot read; upgrade this instance"
    )]
    NewerFormat {
        /// Its format.
        format: u64,
    },
    /// No thread could be started, or it panicked.
    #[error("the thread that opens the snapshot failed; see the cause")]
    Platform(#[source] io::Error),
    /// It is not what its name says.
    #[error("the snapshot is refused: {0}; find out who wrote it")]
    Refused(#[source] Refusal),
    /// The database could not be written.
    #[error("the database of the snapshot cannot be written; see the cause, and look at the disk")]
    Sink(#[source] io::Error),
    /// It could not be read to its end. Tried again, it may be.
    #[error("the snapshot cannot be read; see the cause, and try again")]
    Source(#[source] io::Error),
    /// The store failed. Tried again, it may not.
    #[error("the store failed to read the snapshot; see the cause, and try again")]
    Store(#[source] object_store::Error),
}

impl RestoreError {
    /// Whether trying again may help: the store or the disk failed, or the object changed meanwhile.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Changed
            | Self::Platform(_)
            | Self::Sink(_)
            | Self::Source(_)
            | Self::Store(_) => true,
            Self::Damaged(_) | Self::Headerless | Self::NewerFormat { .. } | Self::Refused(_) => {
                false
            }
        }
    }
}
