//! The ledger, as one process writes it.

use crate::wire::Moment;
use lease_core::audit::{Entry, What};
use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
    path::Path,
};

/// Appends to the ledger that all processes share.
#[derive(Debug)]
pub(crate) struct Book {
    file: File,
    cluster: String,
    instance: String,
}

impl Book {
    pub(crate) fn open(path: &Path, cluster: &str, instance: &str) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { file, cluster: cluster.to_owned(), instance: instance.to_owned() })
    }

    /// One line by one write.
    pub(crate) fn note(&self, at: Moment, epoch: fencing::Epoch, what: What) -> io::Result<()> {
        let entry = Entry::new(&self.cluster, &self.instance, epoch, what).at(at.monotonic());
        self.append(entry.to_line().trim_end())
    }

    /// A line for people, which the auditor passes over.
    pub(crate) fn remark(&self, text: &str) -> io::Result<()> {
        let at = Moment::now().monotonic().as_nanos();
        let line = serde_json::json!({
            "what": "note", "cluster": self.cluster, "instance": self.instance, "at": at, "text": text,
        });
        self.append(&line.to_string())
    }

    /// Whoever is killed within a write can tear its line. The line feed stands in front, so that the
    /// next line of somebody else is whole.
    fn append(&self, line: &str) -> io::Result<()> {
        let line = format!("\n{line}");
        let written = (&self.file).write(line.as_bytes())?;
        match written == line.len() {
            true => Ok(()),
            // Nothing that is written from here on may follow a torn line: this process ends.
            false => Err(io::Error::new(io::ErrorKind::WriteZero, "the ledger's disk is full")),
        }
    }
}
