//! Lines of a bounded length.

use super::entry::LINE_BYTES_MAX;
use std::io::{self, BufRead};

pub(super) enum Line {
    /// It is in the buffer, without its line feed.
    Whole,
    /// Its end was looked for, and not kept.
    TooLong,
}

/// The next line; `None` at the end. Never holds more than the longest line that counts.
pub(super) fn next(from: &mut impl BufRead, buffer: &mut Vec<u8>) -> io::Result<Option<Line>> {
    buffer.clear();
    let (mut is_begun, mut is_too_long) = (false, false);
    loop {
        let available = match from.fill_buf() {
            Ok(available) => available,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if available.is_empty() {
            break;
        }
        is_begun = true;
        let end = available.iter().position(|byte| *byte == b'\n');
        let part = &available[..end.unwrap_or(available.len())];
        // One more than counts, so that a line which is too long shows.
        let room = (LINE_BYTES_MAX + 1).saturating_sub(buffer.len());
        is_too_long |= part.len() > room;
        buffer.extend_from_slice(&part[..part.len().min(room)]);
        let used = end.map_or(part.len(), |end| end + 1);
        from.consume(used);
        if end.is_some() {
            break;
        }
    }
    let line = if is_too_long { Line::TooLong } else { Line::Whole };
    Ok(is_begun.then_some(line))
}
