//! What the start of an object is worth. Pure: the same bytes under the same name have one verdict.

use super::{Refusal, Uncheckable, Verdict};
use crate::{
    cipher::{Cipher, OpenError},
    header::{MAX_START_BYTES, Start},
    name::{Layout, SnapshotName},
};

/// Opens the start of an object that is kept under `name`, and says what it is worth.
///
/// `sealed` is all of the object, or at least its first
/// [`MAX_SEALED_START_BYTES`](crate::cipher::MAX_SEALED_START_BYTES). It can be anything: nothing
/// here panics, and at most one key is derived. That the rest is whole is known once it is opened to
/// its end.
#[must_use]
pub fn judge(cipher: &Cipher, layout: &Layout, name: &SnapshotName, sealed: &[u8]) -> Verdict {
    let mut start = vec![0; MAX_START_BYTES];
    let opened = cipher.open(sealed).and_then(|mut opener| opener.fill(&mut start));
    match opened {
        Ok(filled) => weigh(layout, name, Start::read(layout.application(), &start[..filled])),
        Err(OpenError::Unopenable(why)) => Verdict::Refused(Refusal::DoesNotOpen { why }),
        // Bytes in memory cannot fail to be read.
        Err(OpenError::Source(_)) => Verdict::Unchecked(Uncheckable::Changed),
    }
}

/// Holds what a snapshot says about itself against the name it is kept under.
pub(crate) fn weigh(layout: &Layout, name: &SnapshotName, start: Start) -> Verdict {
    let header = match start {
        Start::Header { header, .. } => header,
        Start::NewerFormat { format } => {
            return Verdict::Unchecked(Uncheckable::NewerFormat { format });
        }
        Start::Bad(why) => return Verdict::Refused(Refusal::BadHeader { why }),
        Start::OtherApplication => return Verdict::Refused(Refusal::OtherApplication),
        Start::Headerless => return Verdict::Legacy,
    };
    let refusal = if header.cluster != *layout.cluster() {
        Refusal::OtherCluster
    } else if header.epoch != name.epoch() {
        Refusal::OtherEpoch { header: header.epoch }
    } else if header.created_at != name.at() {
        Refusal::OtherTime { header: header.created_at }
    } else if header.suffix != name.suffix() {
        Refusal::OtherSuffix
    } else {
        return Verdict::Verified(header);
    };
    Verdict::Refused(refusal)
}
