//! Opening, as a stream.

use super::{
    Cipher, MAX_AGE_HEADER_BYTES, OpenError, Unopenable,
    error::{Marked, of_header, of_stream},
};
use age::{Decryptor, stream::StreamReader};
use std::{
    fmt,
    io::{self, Chain, Cursor, Read},
    iter,
};

/// The line of age's header that ends it starts like this.
const LAST_LINE: &[u8] = b"\n--- ";
const FIRST_LINE: &[u8] = b"age-encryption.org/v1\n";

/// Reads what was sealed. Each byte that it gives was written by a holder of the secret, and stands
/// where it stood; that nothing is missing at the end is known once it says that this is the end.
///
/// Its errors as a [`Read`] are [`io::Error`]s; [`Opener::read_sealed`] tells more.
pub struct Opener<R>(StreamReader<Sealed<R>>);

type Sealed<R> = Chain<Cursor<Vec<u8>>, Marked<R>>;

impl Cipher {
    /// Opens what is read from `source`, from its very first byte. Reads 512 bytes ahead.
    ///
    /// Takes some milliseconds at once, to derive the key.
    ///
    /// # Errors
    ///
    /// [`OpenError::Unopenable`] if it was not sealed with this secret, or asks for more work than is
    /// allowed; [`OpenError::Source`] if the source fails.
    pub fn open<R: Read>(&self, source: R) -> Result<Opener<R>, OpenError> {
        let mut source = Marked(source);
        let start = read_start(&mut source).map_err(of_stream)?;
        if !is_header(&start) {
            let is_cut = start.len() < MAX_AGE_HEADER_BYTES && could_be_header(&start);
            return Err(if is_cut { Unopenable::Cut } else { Unopenable::NotSealed }.into());
        }
        let decryptor = Decryptor::new(Cursor::new(start).chain(source)).map_err(of_header)?;
        decryptor
            .decrypt(iter::once(&self.0.identity as &dyn age::Identity))
            .map(Opener)
            .map_err(of_header)
    }
}

impl<R: Read> Opener<R> {
    /// Reads some bytes, like [`Read::read`]; 0 is the end, and then all of it was there.
    ///
    /// # Errors
    ///
    /// [`OpenError::Unopenable`] if something was changed, added or cut off;
    /// [`OpenError::Source`] if the source fails.
    pub fn read_sealed(&mut self, buffer: &mut [u8]) -> Result<usize, OpenError> {
        self.0.read(buffer).map_err(of_stream)
    }

    /// Fills the buffer as far as there is something to fill it with.
    ///
    /// # Errors
    ///
    /// As for [`read_sealed`](Self::read_sealed).
    pub(crate) fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, OpenError> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.read_sealed(&mut buffer[filled..])? {
                0 => break,
                read => filled += read,
            }
        }
        Ok(filled)
    }
}

impl<R: Read> Read for Opener<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.read_sealed(buffer).map_err(io::Error::from)
    }
}

impl<R> fmt::Debug for Opener<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Opener(..)")
    }
}

fn read_start(source: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut start = Vec::with_capacity(MAX_AGE_HEADER_BYTES);
    source.take(MAX_AGE_HEADER_BYTES as u64).read_to_end(&mut start)?;
    Ok(start)
}

/// Whether all of age's header is there, so that age is never given one of unbounded length.
fn is_header(start: &[u8]) -> bool {
    start.starts_with(FIRST_LINE)
        && start.windows(LAST_LINE.len()).any(|window| window == LAST_LINE)
}

fn could_be_header(start: &[u8]) -> bool {
    let shared = start.len().min(FIRST_LINE.len());
    start[..shared] == FIRST_LINE[..shared]
}
