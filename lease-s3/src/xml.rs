//! The little that is read of a reply's XML. Entities are not expanded, nesting is not recursed into.

use quick_xml::{Reader, events::Event};

/// The text of the first child of that name, right below a root of that name.
pub(crate) fn child(text: &[u8], root: &str, child: &str) -> Option<String> {
    let mut reader = Reader::from_reader(text);
    let (mut depth, mut is_inside) = (0_u32, false);
    loop {
        match reader.read_event().ok()? {
            Event::Start(element) => {
                let name = name(&element)?;
                if depth == 0 && name != root {
                    return None;
                }
                is_inside = depth == 1 && name == child;
                depth += 1;
            }
            Event::Text(text) if is_inside => {
                return String::from_utf8(text.to_vec()).ok().map(|text| text.trim().to_owned());
            }
            Event::End(_) => {
                depth = depth.checked_sub(1)?;
                is_inside = false;
            }
            Event::Eof => return None,
            _ => {}
        }
    }
}

fn name(element: &quick_xml::events::BytesStart<'_>) -> Option<String> {
    String::from_utf8(element.local_name().as_ref().to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_an_error_is_found_and_nothing_else() {
        let error = br#"<?xml version="1.0"?><Error xmlns="x"><Code>NoSuchKey</Code><Code>B</Code></Error>"#;
        assert_eq!(child(error, "Error", "Code").as_deref(), Some("NoSuchKey"));
        for text in [
            &b"<Error><Detail><Code>NoSuchKey</Code></Detail></Error>"[..],
            b"<html><Code>NoSuchKey</Code></html>",
            b"<Error><Code>",
            b"<Error><Code/></Error>",
            b"NoSuchKey",
            b"",
            b"\xff\xfe<",
        ] {
            assert_eq!(child(text, "Error", "Code"), None, "{}", text.escape_ascii());
        }
    }
}
