//! Between an async store and a thread that seals or opens: a few chunks, in either direction.

use crate::cipher::CHUNK_BYTES;
use async_channel::{Receiver, Sender};
use bytes::{Buf as _, Bytes};
use std::{
    io::{self, Read, Write},
    mem,
};

/// How many chunks may lie between the two sides.
const CHUNKS: usize = 4;

/// From a store to a thread.
pub(crate) fn inward() -> (Feed, Fed) {
    let (sender, receiver) = async_channel::bounded(CHUNKS);
    (Feed(sender), Fed { receiver, chunk: Bytes::new(), is_done: false })
}

/// The store's end.
#[derive(Debug)]
pub(crate) struct Feed(Sender<io::Result<Bytes>>);

impl Feed {
    /// Gives a chunk, an error, or an empty chunk as the end; waits while the other end is behind.
    /// `false` if that is gone.
    pub(crate) async fn give(&self, chunk: io::Result<Bytes>) -> bool {
        self.0.send(chunk).await.is_ok()
    }
}

/// The thread's end. That the store's end went away is an error, never the end of what is read.
#[derive(Debug)]
pub(crate) struct Fed {
    receiver: Receiver<io::Result<Bytes>>,
    chunk: Bytes,
    is_done: bool,
}

impl Read for Fed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.chunk.is_empty() && !self.is_done {
            self.chunk = self.receiver.recv_blocking().map_err(|_| gone())??;
            self.is_done = self.chunk.is_empty();
        }
        let read = self.chunk.len().min(buffer.len());
        self.chunk.copy_to_slice(&mut buffer[..read]);
        Ok(read)
    }
}

/// From a thread to a store.
pub(crate) fn outward() -> (Spout, Receiver<Bytes>) {
    let (sender, receiver) = async_channel::bounded(CHUNKS);
    (Spout { sender, pending: Vec::new() }, receiver)
}

/// The thread's end.
#[derive(Debug)]
pub(crate) struct Spout {
    sender: Sender<Bytes>,
    // What is too little to be handed on alone.
    pending: Vec<u8>,
}

impl Write for Spout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pending.extend_from_slice(bytes);
        if self.pending.len() >= CHUNK_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let chunk = Bytes::from(mem::take(&mut self.pending));
        self.sender.send_blocking(chunk).map_err(|_| gone())
    }
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "whoever asked for it has gone")
}
