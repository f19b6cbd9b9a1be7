//! Sealing, as a stream.

use super::Cipher;
use age::{Encryptor, stream::StreamWriter};
use std::{
    fmt,
    io::{self, Write},
    iter,
};

/// Seals what is written to it. Nothing of it opens before [`Sealer::finish`].
pub struct Sealer<W: Write>(StreamWriter<W>);

impl Cipher {
    /// Seals what is written to the sealer, into `sink`.
    ///
    /// Takes some milliseconds at once, to derive the key. Each seal has a key of its own.
    ///
    /// # Errors
    ///
    /// If `sink` fails.
    pub fn seal<W: Write>(&self, sink: W) -> io::Result<Sealer<W>> {
        let recipients = iter::once(&self.0.recipient as &dyn age::Recipient);
        // One recipient is a valid set of them.
        let encryptor = Encryptor::with_recipients(recipients).map_err(io::Error::other)?;
        encryptor.wrap_output(sink).map(Sealer)
    }
}

impl<W: Write> Sealer<W> {
    /// Writes what is left, and what tells that this is the end.
    ///
    /// # Errors
    ///
    /// If the sink fails. What was written so far is cut, and does not open.
    pub fn finish(self) -> io::Result<W> {
        self.0.finish()
    }
}

impl<W: Write> Write for Sealer<W> {
    fn write(&mut self, plaintext: &[u8]) -> io::Result<usize> {
        self.0.write(plaintext)
    }

    /// Flushes the sink. What does not fill a chunk yet stays here.
    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl<W: Write> fmt::Debug for Sealer<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealer(..)")
    }
}
