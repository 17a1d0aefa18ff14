//! The maximum size of a status. A status is sent in headers, of which common clients accept 8 KiB in all. A client may cause a
//! status with a message of 4 MiB. So texts are cut, and long lists show only the first entries.

/// The maximum length of a message, in bytes. The message is sent twice: percent-encoded, and in base64 in the details.
pub(super) const MESSAGE_MAX: usize = 512;
/// The maximum length of a text in the details, in bytes.
pub(super) const TEXT_MAX: usize = 160;
/// The maximum size of all entries of one list in the details, in bytes.
const LIST_MAX: usize = 2_000;
/// The size of an entry without its texts.
const ENTRY: usize = 16;

/// Cuts a text to `max` bytes and adds an ellipsis.
pub(super) fn cut(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(max - '…'.len_utf8());
    format!("{}…", &text[..end])
}

/// The number of list entries that fit, by the size of their texts.
pub(super) fn fitting(sizes: impl Iterator<Item = usize>) -> usize {
    let sums = sizes.scan(0, |sum: &mut usize, size| {
        *sum = sum.saturating_add(size).saturating_add(ENTRY);
        Some(*sum)
    });
    sums.take_while(|sum| *sum <= LIST_MAX).count()
}
