//! The thread that reads and seals: it finds out how large the database is, and how it is to be
//! stored, before it writes the header, which names the key.

use crate::{
    cipher::{CHUNK_BYTES, Cipher},
    header::Header,
    name::Application,
    pipe,
    stream::{self, SealError},
    thread::Running,
};
use async_channel::Receiver;
use bytes::Bytes;
use std::{
    collections::VecDeque,
    io::{self, Read},
};

/// What is to be sealed, either way.
pub(super) struct Job {
    pub(super) cipher: Cipher,
    pub(super) application: Application,
    /// The header if the database has at most `small_max` bytes, and if it has more.
    pub(super) small: Header,
    pub(super) large: Header,
    pub(super) small_max: usize,
}

/// What comes of the thread, in this order.
pub(super) struct Sealing {
    /// Which of the two headers it is.
    pub(super) chosen: Receiver<Header>,
    /// What is sealed.
    pub(super) chunks: Receiver<Bytes>,
    /// The size of the database, or what failed.
    pub(super) result: Running<Result<u64, SealError>>,
}

impl Job {
    pub(super) fn start(self, database: impl Read + Send + 'static) -> io::Result<Sealing> {
        let (choose, chosen) = async_channel::bounded(1);
        let (spout, chunks) = pipe::outward();
        let result = Running::start("snapshot-seal", move || {
            let mut database = database;
            let (start, is_small) =
                read_start(&mut database, self.small_max).map_err(SealError::Database)?;
            let header = if is_small { self.small } else { self.large };
            // Whoever waits for it may be gone; then so is the other end of the spout.
            let _ = choose.try_send(header.clone());
            let database = start.chain(database);
            stream::seal(&self.cipher, &self.application, &header, database, spout)
        })?;
        Ok(Sealing { chosen, chunks, result })
    }
}

/// Reads until it is known whether there are more than `max` bytes.
fn read_start(database: &mut impl Read, max: usize) -> io::Result<(Blocks, bool)> {
    let mut blocks = VecDeque::new();
    let mut bytes = 0;
    while bytes <= max {
        let mut block = Vec::with_capacity(CHUNK_BYTES);
        let read = database.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut block)?;
        if read == 0 {
            return Ok((Blocks { blocks, from: 0 }, true));
        }
        bytes += read;
        blocks.push_back(block);
    }
    Ok((Blocks { blocks, from: 0 }, false))
}

/// What was read already, given back as it is read again.
struct Blocks {
    blocks: VecDeque<Vec<u8>>,
    from: usize,
}

impl Read for Blocks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(block) = self.blocks.front() else { return Ok(0) };
        let rest = &block[self.from..];
        let read = rest.len().min(buffer.len());
        buffer[..read].copy_from_slice(&rest[..read]);
        self.from += read;
        if self.from == block.len() {
            self.blocks.pop_front();
            self.from = 0;
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_is_given_back_whole() {
        for (length, max) in
            [(0, 0), (1, 0), (1, 1), (70_000, 69_999), (70_000, 70_000), (200_000, 5)]
        {
            let database: Vec<u8> = (0..length).map(|n: usize| n.to_le_bytes()[0]).collect();
            let mut source = &*database;
            let (blocks, is_small) = read_start(&mut source, max).unwrap();
            assert_eq!(is_small, length <= max, "{length} {max}");
            let mut again = Vec::new();
            blocks.chain(source).read_to_end(&mut again).unwrap();
            assert!(again == database, "{length} {max}");
        }
    }
}
