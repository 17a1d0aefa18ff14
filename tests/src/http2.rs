//! Frames of HTTP/2, byte by byte.

/// The first bytes of a client.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The type of a frame with data.
pub const DATA: u8 = 0;
/// The type of a frame with headers.
pub const HEADERS: u8 = 1;
/// The type of a frame with the reset of a stream.
pub const RST_STREAM: u8 = 3;
/// The type of a frame with settings.
pub const SETTINGS: u8 = 4;
/// The type of a frame with a ping.
pub const PING: u8 = 6;
/// The type of a frame with the announcement that a connection ends.
pub const GOAWAY: u8 = 7;
/// The flag of headers that are whole.
pub const END_HEADERS: u8 = 4;

/// Writes a frame.
///
/// # Panics
/// If the payload is longer than any frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("frames are short");
    let head = [
        &length.to_be_bytes()[1..],
        &[kind, flags],
        &stream.to_be_bytes(),
    ];
    [&head.concat()[..], payload].concat()
}

/// Writes the headers of a call of a method of the decision service, or of any path, one of them of `bytes` bytes.
pub fn request(method: &str, bytes: usize) -> Vec<u8> {
    let path = match method {
        "Reconcile" | "Decide" | "Simulate" => format!("/decree.v1.DecisionService/{method}"),
        other => other.to_owned(),
    };
    let value = "a".repeat(bytes);
    let mut headers = vec![
        (":method", "POST"),
        (":scheme", "http"),
        (":path", &path),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    headers.extend((bytes > 0).then_some(("x", &*value)));
    let headers = headers.into_iter();
    headers
        .flat_map(|(name, value)| header(name, value))
        .collect()
}

/// Writes a header as a literal without indexing.
pub fn header(name: &str, value: &str) -> Vec<u8> {
    let mut written = vec![0];
    for text in [name, value] {
        length(text.len(), &mut written);
        written.extend_from_slice(text.as_bytes());
    }
    written
}

/// Writes a length with a prefix of seven bits.
fn length(length: usize, out: &mut Vec<u8>) {
    const PREFIX_MAX: usize = 127;
    let Some(mut rest) = length.checked_sub(PREFIX_MAX) else {
        out.push(length.to_le_bytes()[0]);
        return;
    };
    out.push(127);
    while rest >= 128 {
        out.push(rest.to_le_bytes()[0] | 0x80);
        rest >>= 7;
    }
    out.push(rest.to_le_bytes()[0]);
}
