//! Why something sealed does not open.

use super::MAX_AGE_HEADER_BYTES;
use age::DecryptError;
use std::io;

/// Something cannot be opened, and will not be next time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unopenable {
    /// A byte of it was changed, or something was added.
    #[error("a byte of it was changed")]
    Altered,
    /// It ends too early.
    #[error("it is cut")]
    Cut,
    /// It is sealed, with something else than a passphrase alone.
    #[error("it is not sealed with a passphrase alone")]
    ForeignRecipient,
    /// It is not what age writes, or has a header of more than [`MAX_AGE_HEADER_BYTES`].
    #[error(
        "it is not sealed by age, version 1, with a header of at most {MAX_AGE_HEADER_BYTES} bytes"
    )]
    NotSealed,
    /// Deriving its key would take more work than is allowed. Nothing was derived.
    #[error("it asks for work factor {found}, above what is allowed")]
    TooMuchWork {
        /// The work factor it asks for.
        found: u8,
    },
    /// It was sealed with another passphrase: by another cluster, or by somebody else.
    #[error("it was sealed with another secret")]
    WrongSecret,
}

/// Opening failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// What was sealed could not be read. Tried again, it may be.
    #[error("what was sealed cannot be read; see the cause, and try again")]
    Source(#[source] io::Error),
    /// It does not open. Trying again does not help.
    #[error("it cannot be opened with this secret: {0}")]
    Unopenable(#[from] Unopenable),
}

impl From<OpenError> for io::Error {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Source(source) => source,
            OpenError::Unopenable(why) => Self::new(io::ErrorKind::InvalidData, why),
        }
    }
}

/// A failure of the source, told from age's own errors, which are `io::Error`s as well.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct OfSource(io::Error);

/// A source whose failures can be told from age's.
#[derive(Debug)]
pub(super) struct Marked<R>(pub(super) R);

impl<R: io::Read> io::Read for Marked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => error,
            kind => io::Error::new(kind, OfSource(error)),
        })
    }
}

pub(super) fn of_header(error: DecryptError) -> OpenError {
    match error {
        DecryptError::Io(error) => of_stream(error),
        DecryptError::ExcessiveWork { required, .. } => {
            Unopenable::TooMuchWork { found: required }.into()
        }
        DecryptError::NoMatchingKeys => Unopenable::ForeignRecipient.into(),
        DecryptError::DecryptionFailed | DecryptError::KeyDecryptionFailed => {
            Unopenable::WrongSecret.into()
        }
        DecryptError::InvalidMac => Unopenable::Altered.into(),
        _ => Unopenable::NotSealed.into(),
    }
}

pub(super) fn of_stream(error: io::Error) -> OpenError {
    let kind = error.kind();
    match error.downcast::<OfSource>() {
        Ok(OfSource(source)) => OpenError::Source(source),
        Err(_) if kind == io::ErrorKind::UnexpectedEof => Unopenable::Cut.into(),
        Err(_) => Unopenable::Altered.into(),
    }
}
