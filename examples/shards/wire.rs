//! What a process tells the one that started it: one JSON object a line.

pub(crate) use crate::processes::moment::Moment;
use fencing::Epoch;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub(crate) enum Say {
    /// Work on a shard begins.
    Begin { at: Moment, shard: u16, epoch: Epoch },
    /// It has ended; `lost` if the session had ended under it.
    End { at: Moment, shard: u16, epoch: Epoch, lost: bool },
    /// How many requests it has sent to the store so far.
    Requests { count: u64 },
}
