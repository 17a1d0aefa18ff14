//! What a status may weigh. It travels in headers, of which common clients take 8 KiB in all, and a client may have caused it
//! with a message of 4 MiB. So each text is cut, and of a long list only the first entries are named.

/// The longest message of a status, in bytes. It travels twice: percent-encoded, and in base64 among the details.
pub(super) const MESSAGE_MAX: usize = 512;
/// The longest text among the details, in bytes.
pub(super) const TEXT_MAX: usize = 160;
/// The bytes that the entries of one list among the details may take together.
const LIST_MAX: usize = 2_000;
/// What an entry takes beside its texts.
const ENTRY: usize = 16;

/// Returns a text, or its beginning and an ellipsis where it is longer than `max` bytes.
pub(super) fn cut(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(max - '…'.len_utf8());
    format!("{}…", &text[..end])
}

/// Returns how many entries of a list fit, by the bytes of their texts.
pub(super) fn fitting(sizes: impl Iterator<Item = usize>) -> usize {
    let sums = sizes.scan(0, |sum: &mut usize, size| {
        *sum = sum.saturating_add(size).saturating_add(ENTRY);
        Some(*sum)
    });
    sums.take_while(|sum| *sum <= LIST_MAX).count()
}
