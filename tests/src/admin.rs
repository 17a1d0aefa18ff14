//! The admin endpoint of a process, over plain HTTP.

use std::{
    io::{self, ErrorKind, Read as _, Write as _},
    net::TcpStream,
};

/// Reads a page of an admin endpoint. Any status but 200 is an error.
///
/// # Errors
/// The other answer, or why there is none.
pub fn get(address: &str, path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    if answer.starts_with("HTTP/1.1 200") {
        Ok(answer)
    } else {
        Err(io::Error::other(answer))
    }
}

/// Returns the value of a metric; 0 if the process has not set it.
///
/// # Panics
/// If there are no metrics.
pub fn metric(address: &str, name: &str) -> u64 {
    let mut text = get(address, "/metrics");
    // A connection of an admin port lasts 20 s, which a busy machine can use up.
    let is_reset = |text: &io::Result<String>| matches!(text, Err(it) if it.kind() == ErrorKind::ConnectionReset);
    for _ in 0..5 {
        if is_reset(&text) {
            text = get(address, "/metrics");
        }
    }
    let text = text.expect("it serves its metrics");
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(name));
    let value = lines.next().map_or("0", str::trim);
    value.parse().expect("a counter is a whole number")
}
